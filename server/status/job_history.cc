#include "server/status/job_history.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"

namespace gemmd {
namespace {

constexpr absl::string_view kPhaseNames[] = {"receive",        "queue",  "device_to_device",
                                             "host_to_device", "kernel", "check",
                                             "device_to_host", "send",   "total"};
constexpr size_t kStepsOfAMinute = 12;

auto PhasesOf(const PhaseDurations& phases) {
  return std::array{phases.receive,        phases.queue,  phases.device_to_device,
                    phases.host_to_device, phases.kernel, phases.check,
                    phases.device_to_host, phases.send,   phases.total};
}

int64_t StepOf(absl::Time time) { return (time - absl::UnixEpoch()) / JobHistory::kStep; }

std::string Cut(absl::string_view text) { return std::string(text.substr(0, EndedJob::kMostText)); }

void AddTo(JobCounts& to, const JobCounts& more) {
  to.jobs += more.jobs;
  to.failed += more.failed;
  to.products += more.products;
  to.flops += more.flops;
  to.seconds += more.seconds;
}

bool IsSlower(const EndedJob& x, const EndedJob& y) { return x.phases.total > y.phases.total; }

std::vector<std::string> NamesOf(absl::Span<const gemm::Kernel* const> catalogue) {
  std::vector<std::string> names;
  for (const gemm::Kernel* kernel : catalogue) names.emplace_back(kernel->name);
  return names;
}

EndedJob Describe(const JobReport& report, const absl::Status& outcome, uint64_t number) {
  EndedJob job = {.number = number,
                  .ended = SteadyNow(),
                  .code = outcome.code(),
                  .error = Cut(outcome.message()),
                  .kernel = Cut(report.kernel),
                  .device = Cut(report.device),
                  .caller = Cut(report.caller),
                  .reason = Cut(report.reason),
                  .m = report.m,
                  .n = report.n,
                  .k = report.k,
                  .products = report.products(),
                  .tflops = report.tflops(),
                  .phases = report.phases};
  // A job that ended before a kernel was chosen may not have had types.
  if (!report.kernel.empty()) {
    job.types = absl::StrCat(gemm::Name(report.types.a), " x ", gemm::Name(report.types.b));
  }
  return job;
}

}  // namespace

size_t LatencyBuckets::IndexOf(absl::Duration duration) {
  const auto quarters = static_cast<uint64_t>(
      std::clamp<int64_t>(absl::ToInt64Nanoseconds(duration) / 250, 0, int64_t{1} << 40));
  if (quarters < 4) return 0;
  const auto doublings = static_cast<size_t>(std::bit_width(quarters)) - 3;  // of 1 us
  const size_t quarter = (quarters >> doublings) & 3;
  return std::min(1 + 4 * doublings + quarter, kCount - 1);
}

double LatencyBuckets::LowerSeconds(size_t index) {
  if (index == 0) return 0;
  const size_t doublings = (index - 1) / 4;
  return static_cast<double>((4 + (index - 1) % 4) << doublings) * 250e-9;
}

struct JobHistory::Step {
  // Counts by name, for the first names of a step; the last cell is all others'.
  struct Cells {
    static constexpr uint16_t kOthers = 0xffff;
    std::array<uint16_t, kMostRows> names;
    std::array<JobCounts, kMostRows> counts;
    size_t used = 0;

    JobCounts& Of(size_t name) {
      for (size_t i = 0; i < used; ++i) {
        if (names[i] == name) return counts[i];
      }
      if (used == kMostRows - 1) name = kOthers;
      if (used == kMostRows) return counts[used - 1];
      names[used] = static_cast<uint16_t>(name);
      return counts[used++] = {};
    }
  };

  int64_t number = -1;  // StepOf its begin
  JobCounts all;
  Cells kernels, devices, callers;
  std::array<std::array<uint32_t, LatencyBuckets::kCount>, kPhases> latencies{};
};

JobHistory::JobHistory(EngineObserver& next, absl::Span<const gemm::Kernel* const> catalogue)
    : next_(next), kernels_(NamesOf(catalogue), "none"), steps_(kSteps + 1), minutes_(kMinutes) {
  static_assert(sizeof(Step) * (kSteps + 1) < 2 << 20);
  failed_.reserve(kMostJobs);
}

JobHistory::~JobHistory() = default;

JobHistory::Step& JobHistory::Now() {
  const int64_t number = StepOf(SteadyNow());
  Step& step = steps_[static_cast<size_t>(number) % steps_.size()];
  if (step.number != number) {
    step = Step();
    step.number = number;
  }
  return step;
}

size_t JobHistory::DeviceOf(const std::string& name) {
  const auto it = std::find(devices_.begin(), devices_.end(), name);
  if (it != devices_.end()) return static_cast<size_t>(it - devices_.begin());
  if (devices_.size() == kMostNames) return Step::Cells::kOthers;
  devices_.push_back(name);
  return devices_.size() - 1;
}

void JobHistory::OnJobEnd(const JobReport& report, const absl::Status& outcome) {
  next_.OnJobEnd(report, outcome);
  const size_t kernel = kernels_.IndexOf(report.kernel);
  const size_t caller = callers_.IndexOf(report.caller);
  const auto phases = PhasesOf(report.phases);
  const bool ok = outcome.ok();
  JobCounts counts = {.jobs = 1,
                      .failed = ok ? 0 : 1,
                      .products = ok ? report.products() : 0,
                      .flops = ok ? report.flops : 0};
  MutexLock lock(mutex_);
  Step& step = Now();
  AddTo(step.all, counts);
  AddTo(step.callers.Of(caller), counts);
  counts.seconds = absl::ToDoubleSeconds(report.device_time);
  if (!report.device.empty()) AddTo(step.devices.Of(DeviceOf(report.device)), counts);
  counts.seconds = absl::ToDoubleSeconds(report.phases.kernel);
  if (!report.kernel.empty()) AddTo(step.kernels.Of(kernel), counts);
  for (size_t i = 0; i < kPhases; ++i) {
    if (phases[i] > absl::ZeroDuration()) ++step.latencies[i][LatencyBuckets::IndexOf(phases[i])];
  }
  ++ended_;
  Keep(report, outcome);
}

void JobHistory::Keep(const JobReport& report, const absl::Status& outcome) {
  if (!outcome.ok()) {
    if (failed_.size() < kMostJobs) failed_.emplace_back();
    failed_[next_failed_] = Describe(report, outcome, ended_);
    next_failed_ = (next_failed_ + 1) % kMostJobs;
  }
  const int64_t number = (SteadyNow() - absl::UnixEpoch()) / absl::Minutes(1);
  Minute& minute = minutes_[static_cast<size_t>(number) % kMinutes];
  if (minute.number != number) minute = {.number = number, .jobs = {}};
  if (minute.jobs.size() == kMostJobs) {
    if (report.phases.total <= minute.jobs.front().phases.total) return;
    std::pop_heap(minute.jobs.begin(), minute.jobs.end(), IsSlower);
    minute.jobs.pop_back();
  }
  minute.jobs.push_back(Describe(report, outcome, ended_));
  std::push_heap(minute.jobs.begin(), minute.jobs.end(), IsSlower);
}

void JobHistory::OnDeviceTime(absl::string_view caller, absl::Duration time) {
  next_.OnDeviceTime(caller, time);
  const size_t name = callers_.IndexOf(caller);
  MutexLock lock(mutex_);
  Now().callers.Of(name).seconds += absl::ToDoubleSeconds(time);
}

void JobHistory::OnTransferEnd(bool upload, uint64_t bytes, absl::Duration elapsed,
                               const absl::Status& outcome) {
  next_.OnTransferEnd(upload, bytes, elapsed, outcome);
}

namespace {

using Latencies = std::array<int64_t, LatencyBuckets::kCount>;

// Within a bucket, values are taken as evenly spread.
double Percentile(const Latencies& buckets, int64_t count, double share) {
  double rank = share * static_cast<double>(count);
  for (size_t i = 0; i < buckets.size(); ++i) {
    const auto here = static_cast<double>(buckets[i]);
    if (here > 0 && rank <= here) {
      const double low = LatencyBuckets::LowerSeconds(i);
      const double high = i + 1 < buckets.size() ? LatencyBuckets::LowerSeconds(i + 1) : low;
      return low + (high - low) * rank / here;
    }
    rank -= here;
  }
  return 0;
}

PhaseLatency Summary(absl::string_view phase, const Latencies& buckets) {
  PhaseLatency latency = {.phase = phase};
  for (const int64_t count : buckets) latency.count += count;
  if (latency.count == 0) return latency;
  latency.p50 = Percentile(buckets, latency.count, 0.5);
  latency.p90 = Percentile(buckets, latency.count, 0.9);
  latency.p99 = Percentile(buckets, latency.count, 0.99);
  latency.longest = Percentile(buckets, latency.count, 1);
  return latency;
}

// The series that `name_of` gives names to, the busiest first.
template <typename CellsOf, typename NameOf>
std::vector<JobSeries> SeriesOf(const auto& steps, CellsOf cells_of, NameOf name_of) {
  std::vector<JobSeries> series;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == nullptr) continue;
    const auto& cells = cells_of(*steps[i]);
    for (size_t j = 0; j < cells.used; ++j) {
      const std::string name = name_of(cells.names[j]);
      auto it = std::find_if(series.begin(), series.end(),
                             [&name](const JobSeries& one) { return one.name == name; });
      if (it == series.end()) {
        it = series.insert(it, {.name = name, .total = {}, .steps = {}});
        it->steps.resize(steps.size());
      }
      AddTo(it->steps[i], cells.counts[j]);
      AddTo(it->total, cells.counts[j]);
    }
  }
  std::sort(series.begin(), series.end(), [](const JobSeries& x, const JobSeries& y) {
    return std::pair(x.total.seconds, x.total.jobs) > std::pair(y.total.seconds, y.total.jobs);
  });
  return series;
}

}  // namespace

HistoryView JobHistory::View() const {
  const int64_t now = StepOf(SteadyNow());
  // Complete ones, the oldest first. Copied, so that the lock is held for a moment alone.
  std::vector<Step> copies;
  std::vector<std::string> device_names;
  {
    MutexLock lock(mutex_);
    device_names = devices_;
    for (const Step& step : steps_) {
      if (step.number >= now - static_cast<int64_t>(kSteps) && step.number < now) {
        copies.push_back(step);
      }
    }
  }
  std::vector<const Step*> steps(kSteps);
  for (const Step& step : copies) {
    steps[static_cast<size_t>(step.number - now + static_cast<int64_t>(kSteps))] = &step;
  }
  HistoryView view = {.end = absl::UnixEpoch() + now * kStep};
  view.all.steps.resize(kSteps);
  std::array<Latencies, kPhases> minute{}, window{};
  for (size_t i = 0; i < kSteps; ++i) {
    if (steps[i] == nullptr) continue;
    view.all.steps[i] = steps[i]->all;
    AddTo(view.all.total, steps[i]->all);
    for (size_t phase = 0; phase < kPhases; ++phase) {
      for (size_t bucket = 0; bucket < LatencyBuckets::kCount; ++bucket) {
        const uint32_t count = steps[i]->latencies[phase][bucket];
        window[phase][bucket] += count;
        if (i + kStepsOfAMinute >= kSteps) minute[phase][bucket] += count;
      }
    }
  }
  for (size_t phase = 0; phase < kPhases; ++phase) {
    view.last_minute.push_back(Summary(kPhaseNames[phase], minute[phase]));
    view.window.push_back(Summary(kPhaseNames[phase], window[phase]));
  }
  const auto named = [](auto name_of) {
    return [name_of](uint16_t index) -> std::string {
      return index == Step::Cells::kOthers ? "others" : name_of(index);
    };
  };
  view.kernels = SeriesOf(
      steps, [](const Step& step) -> auto& { return step.kernels; },
      named([this](size_t i) { return kernels_[i]; }));
  view.devices = SeriesOf(
      steps, [](const Step& step) -> auto& { return step.devices; },
      named([&device_names](size_t i) { return device_names[i]; }));
  view.callers = SeriesOf(
      steps, [](const Step& step) -> auto& { return step.callers; },
      named([this](size_t i) { return callers_[i]; }));
  return view;
}

std::vector<EndedJob> JobHistory::Slowest() const {
  std::vector<EndedJob> jobs;
  {
    MutexLock lock(mutex_);
    for (const Minute& minute : minutes_) {
      jobs.insert(jobs.end(), minute.jobs.begin(), minute.jobs.end());
    }
  }
  std::erase_if(jobs, [](const EndedJob& job) { return job.ended < SteadyNow() - kStep * kSteps; });
  std::sort(jobs.begin(), jobs.end(), IsSlower);
  jobs.resize(std::min(jobs.size(), kMostJobs));
  return jobs;
}

std::vector<EndedJob> JobHistory::LatestFailed() const {
  std::vector<EndedJob> jobs;
  {
    MutexLock lock(mutex_);
    jobs = failed_;
  }
  std::sort(jobs.begin(), jobs.end(),
            [](const EndedJob& x, const EndedJob& y) { return x.number > y.number; });
  return jobs;
}

}  // namespace gemmd
