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

ModelCounters::Entry& ModelCounters::EntryOf(Key key) {
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    if (entries_.size() >= kMostModels) {
      entries_.erase(std::min_element(
          entries_.begin(), entries_.end(),
          [](const auto& x, const auto& y) { return x.second.used < y.second.used; }));
    }
    found = entries_.emplace(std::move(key), Entry()).first;
  }
  found->second.used = ++requests_;
  return found->second;
}

void ModelCounters::OnSuccess(const std::string& caller, const Model& model,
                              const JobReport& report) {
  const PhaseDurations& phases = report.phases;
  MutexLock lock(mutex_);
  inference::ModelStatistics& sum = EntryOf({caller, model.name}).statistics;
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
  const Key key = {caller, model.name};
  MutexLock lock(mutex_);
  if (model.kind == ModelKind::kLinear && entries_.count(key) == 0) return;
  AddTime(elapsed, *EntryOf(key).statistics.mutable_inference_stats()->mutable_fail());
}

inference::ModelStatistics ModelCounters::Of(const std::string& caller,
                                             const std::string& model) const {
  inference::ModelStatistics statistics;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find({caller, model});
    if (found != entries_.end()) statistics = found->second.statistics;
  }
  statistics.set_name(model);
  return statistics;
}

std::vector<std::string> ModelCounters::ModelsOf(const std::string& caller) const {
  std::vector<std::string> models;
  MutexLock lock(mutex_);
  for (auto it = entries_.lower_bound({caller, ""});
       it != entries_.end() && it->first.first == caller; ++it) {
    models.push_back(it->first.second);
  }
  return models;
}

}  // namespace gemmd
