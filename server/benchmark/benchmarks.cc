#include "server/benchmark/benchmarks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/bench/measure/benchmark.h"
#include "server/base/clock.h"
#include "server/benchmark/bounded_backend.h"
#include "server/engine/bounds/bound_error.h"

namespace gemmd {
namespace {

namespace bench = gemm::bench;

// Cancelled benchmarks that wait behind a launch that does not end, and the next one.
constexpr size_t kMostRuns = 8;

// As kernels/bench names the engine's device.
std::string BackendName(const DeviceInfoRecord& device) {
  return device.caps.target == gemm::Target::kHost ? "host" : device.name;
}

std::string VendorOf(const gemm::DeviceCaps& caps) {
  return caps.target == gemm::Target::kHost ? "OpenBLAS" : "cuBLAS";
}

absl::Status CheckCount(const std::vector<bench::Candidate>& candidates) {
  if (candidates.size() <= kMaxBenchmarkCandidates) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("kernels, types and params make ", candidates.size(),
                   " candidates; a benchmark takes up to ", kMaxBenchmarkCandidates));
}

}  // namespace

BenchmarkRun::BenchmarkRun(std::string caller, std::string device, bool gives_way)
    : caller_(std::move(caller)),
      device_(std::move(device)),
      gives_way_(gives_way),
      began_(SteadyNow()) {}

void BenchmarkRun::Cancel(absl::Status why) {
  MutexLock lock(mutex_);
  why_.Update(std::move(why));
  stop_ = true;
}

absl::Status BenchmarkRun::cancelled() const {
  MutexLock lock(mutex_);
  return why_;
}

void BenchmarkRun::Note(const bench::Progress& progress) {
  MutexLock lock(mutex_);
  progress_ = progress;
}

BenchmarkUnderWay BenchmarkRun::Describe() const {
  MutexLock lock(mutex_);
  std::string subject = gives_way_ ? "idle tuning, " : "";
  if (progress_.has_value()) {
    absl::StrAppend(&subject, "shape ", progress_->shape + 1, "/", progress_->shapes, " ",
                    bench::ShapeName(progress_->at), ": ", progress_->step);
  } else {
    absl::StrAppend(&subject, "not begun");
  }
  return {.caller = caller_,
          .device = device_,
          .subject = std::move(subject),
          .age = SteadyNow() - began_,
          .ending = !why_.ok()};
}

Benchmarks::Benchmarks(Engine& engine, const BenchmarkLimits& limits,
                       std::function<void(bool)> on_running)
    : engine_(engine), limits_(limits), on_running_(std::move(on_running)) {}

std::vector<BenchmarkUnderWay> Benchmarks::UnderWay() const {
  std::vector<BenchmarkUnderWay> all;
  MutexLock lock(mutex_);
  for (const std::shared_ptr<BenchmarkRun>& run : runs_) all.push_back(run->Describe());
  return all;
}

absl::StatusOr<std::shared_ptr<BenchmarkRun>> Benchmarks::Start(
    BenchmarkSpec spec, std::shared_ptr<BenchmarkListener> listener) {
  if (limits_.time == absl::ZeroDuration()) {
    return absl::FailedPreconditionError(
        "this server takes no benchmarks: its flag --benchmark-limit is 0");
  }
  if (spec.budget.value_or(limits_.time) > limits_.time) {
    return BoundError(
        {.bound = "benchmark-limit"},
        absl::StrCat("budget: ", absl::FormatDuration(*spec.budget), "; this server takes up to ",
                     absl::FormatDuration(limits_.time), " (its flag --benchmark-limit)"));
  }
  const absl::StatusOr<size_t> device = IndexOfDevice(engine_.devices(), spec.device);
  if (!device.ok()) return device.status();
  if (absl::Status health = engine_.devices()[*device]->Health(); !health.ok()) return health;
  auto run = std::make_shared<BenchmarkRun>(spec.caller, engine_.devices()[*device]->info().name,
                                            spec.gives_way);
  if (absl::Status entered = Enter(run); !entered.ok()) return entered;
  thread_.Schedule([this, run, device = *device, spec = std::move(spec),
                    listener = std::move(listener)]() mutable {
    absl::StatusOr<BenchmarkTotals> totals = Measure(spec, device, *run, *listener);
    Leave();
    listener->OnEnd(std::move(totals));
  });
  return run;
}

absl::Status Benchmarks::Enter(const std::shared_ptr<BenchmarkRun>& run) {
  MutexLock lock(mutex_);
  const bool all_end =
      std::all_of(runs_.begin(), runs_.end(), [&run](const std::shared_ptr<BenchmarkRun>& other) {
        return !other->cancelled().ok() || (other->gives_way() && !run->gives_way());
      });
  // A benchmark that gives way does not wait, either.
  if (!all_end || runs_.size() >= kMostRuns || (run->gives_way() && !runs_.empty())) {
    return BoundError(
        {.bound = "benchmarks", .retry_after = absl::Seconds(1)},
        "a benchmark runs already, and a server takes one at a time: try again later; "
        "GetServerInfo says whose it is, and what it measures");
  }
  for (const std::shared_ptr<BenchmarkRun>& other : runs_) {
    other->Cancel(absl::AbortedError("another benchmark came"));
  }
  runs_.push_back(run);
  if (runs_.size() == 1 && on_running_) on_running_(true);
  return absl::OkStatus();
}

void Benchmarks::Leave() {
  MutexLock lock(mutex_);
  runs_.pop_front();
  if (runs_.empty() && on_running_) on_running_(false);
}

int64_t Benchmarks::JobsBegun(size_t device) const {
  return engine_.Stats().devices[device].jobs_begun;
}

absl::StatusOr<BenchmarkTotals> Benchmarks::Measure(const BenchmarkSpec& spec, size_t device,
                                                    BenchmarkRun& run,
                                                    BenchmarkListener& listener) {
  const absl::Time began = SteadyNow();
  const auto stopped = [&]() -> absl::Status {
    if (absl::Status cancelled = run.cancelled(); !cancelled.ok()) return cancelled;
    return spec.stopped ? spec.stopped() : absl::OkStatus();
  };
  // It waited for another to end, and nobody waits for it any more.
  if (absl::Status why = stopped(); !why.ok()) return why;
  const DeviceStats before = engine_.Stats().devices[device];
  const DeviceInfoRecord& info = engine_.devices()[device]->info();
  absl::StatusOr<std::unique_ptr<bench::Backend>> own = bench::CreateBackend(BackendName(info));
  if (!own.ok()) return own.status();
  BoundedBackend backend(*std::move(own), limits_.memory_bytes, stopped, run.stop());
  auto candidates = bench::SelectCandidates(spec.selection, backend.caps());
  if (!candidates.ok()) return candidates.status();
  if (absl::Status count = CheckCount(*candidates); !count.ok()) return count;
  const bench::BenchmarkPlan plan = {.shapes = spec.shapes,
                                     .candidates = *std::move(candidates),
                                     .rules = spec.rules,
                                     .inputs = spec.inputs,
                                     .budget = spec.budget.value_or(limits_.time)};
  listener.OnOutline({.device = info.name,
                      .metadata = backend.metadata(),
                      .machine = info.machine,
                      .vendor = VendorOf(backend.caps()),
                      .shapes = plan.shapes,
                      .candidates = plan.candidates.size(),
                      .budget = plan.budget});
  size_t shape = 0;
  bench::BenchmarkObserver observer;
  observer.cancelled = [&] { return !stopped().ok(); };
  observer.on_progress = [&](const bench::Progress& progress) {
    shape = progress.shape;
    run.Note(progress);
    listener.OnProgress(progress);
  };
  observer.on_rows = [&](absl::Span<const bench::Row> rows) { listener.OnRows(shape, rows); };
  const absl::Status status = bench::RunBenchmark(backend, plan, observer);
  // The reason for the stop, and not an error that the stop caused.
  if (absl::Status why = stopped(); !why.ok()) return why;
  if (!status.ok()) return status;
  return BenchmarkTotals{.elapsed = SteadyNow() - began,
                         .jobs = before.streams.used + JobsBegun(device) - before.jobs_begun};
}

}  // namespace gemmd
