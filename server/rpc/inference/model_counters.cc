#include "server/rpc/inference/model_counters.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace gemmd {
namespace {

void AddTime(absl::Duration time, inference::StatisticDuration& to) {
  to.set_count(to.count() + 1);
  to.set_ns(to.ns() + static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Nanoseconds(time), 0)));
}

// What the protocol calls the batch of a request.
int64_t SamplesOf(const Model& model, const JobReport& report) {
  return model.kind == ModelKind::kLinear ? report.m : report.batch;
}

}  // namespace

void ModelCounters::ForgetOldest(Models& of) {
  of.erase(std::min_element(of.begin(), of.end(), [](const auto& x, const auto& y) {
    return x.second.used < y.second.used;
  }));
  --models_;
}

ModelCounters::Entry& ModelCounters::EntryOf(const std::string& caller, const std::string& model) {
  Models& own = callers_[caller];
  if (own.count(model) == 0) {
    if (own.size() >= kMostOfCaller) ForgetOldest(own);
    if (models_ >= kMostModels) {
      const auto largest = std::max_element(
          callers_.begin(), callers_.end(),
          [](const auto& x, const auto& y) { return x.second.size() < y.second.size(); });
      ForgetOldest(largest->second);
      if (largest->second.empty() && &largest->second != &own) callers_.erase(largest);
    }
    ++models_;
  }
  Entry& entry = own[model];
  entry.used = ++requests_;
  return entry;
}

const ModelCounters::Entry* ModelCounters::Find(const std::string& caller,
                                                const std::string& model) const {
  const auto own = callers_.find(caller);
  if (own == callers_.end()) return nullptr;
  const auto found = own->second.find(model);
  return found == own->second.end() ? nullptr : &found->second;
}

void ModelCounters::OnSuccess(const std::string& caller, const Model& model,
                              const JobReport& report) {
  const PhaseDurations& phases = report.phases;
  MutexLock lock(mutex_);
  inference::ModelStatistics& sum = EntryOf(caller, model.name).statistics;
  sum.set_last_inference(static_cast<uint64_t>(absl::ToUnixMillis(absl::Now())));
  sum.set_inference_count(sum.inference_count() + static_cast<uint64_t>(SamplesOf(model, report)));
  sum.set_execution_count(sum.execution_count() + 1);
  inference::InferStatistics& times = *sum.mutable_inference_stats();
  AddTime(phases.total, *times.mutable_success());
  AddTime(phases.queue, *times.mutable_queue());
  AddTime(phases.receive + phases.device_to_device + phases.host_to_device,
          *times.mutable_compute_input());
  AddTime(phases.kernel + phases.check, *times.mutable_compute_infer());
  AddTime(phases.device_to_host + phases.send, *times.mutable_compute_output());
}

void ModelCounters::OnFailure(const std::string& caller, const Model& model,
                              absl::Duration elapsed) {
  MutexLock lock(mutex_);
  if (model.kind == ModelKind::kLinear && Find(caller, model.name) == nullptr) return;
  AddTime(elapsed,
          *EntryOf(caller, model.name).statistics.mutable_inference_stats()->mutable_fail());
}

inference::ModelStatistics ModelCounters::Of(const std::string& caller,
                                             const std::string& model) const {
  inference::ModelStatistics statistics;
  {
    MutexLock lock(mutex_);
    const Entry* const found = Find(caller, model);
    if (found != nullptr) statistics = found->statistics;
  }
  statistics.set_name(model);
  return statistics;
}

size_t ModelCounters::callers() const {
  MutexLock lock(mutex_);
  return callers_.size();
}

std::vector<std::string> ModelCounters::ModelsOf(const std::string& caller) const {
  std::vector<std::string> models;
  MutexLock lock(mutex_);
  const auto own = callers_.find(caller);
  if (own == callers_.end()) return models;
  for (const auto& [model, entry] : own->second) models.push_back(model);
  return models;
}

}  // namespace gemmd
