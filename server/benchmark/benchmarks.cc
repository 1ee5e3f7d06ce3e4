#include "server/benchmark/benchmarks.h"

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

void BenchmarkRun::Cancel(absl::Status why) {
  MutexLock lock(mutex_);
  why_.Update(std::move(why));
}

absl::Status BenchmarkRun::cancelled() const {
  MutexLock lock(mutex_);
  return why_;
}

Benchmarks::Benchmarks(Engine& engine, const BenchmarkLimits& limits,
                       std::function<void(bool)> on_running)
    : engine_(engine), limits_(limits), on_running_(std::move(on_running)) {}

bool Benchmarks::running() const {
  MutexLock lock(mutex_);
  return running_ > 0;
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
  auto run = std::make_shared<BenchmarkRun>();
  if (absl::Status entered = Enter(run, spec.gives_way); !entered.ok()) return entered;
  thread_.Schedule([this, run, device = *device, spec = std::move(spec),
                    listener = std::move(listener)]() mutable {
    absl::StatusOr<BenchmarkTotals> totals = Measure(spec, device, *run, *listener);
    Leave();
    listener->OnEnd(std::move(totals));
  });
  return run;
}

absl::Status Benchmarks::Enter(const std::shared_ptr<BenchmarkRun>& run, bool gives_way) {
  MutexLock lock(mutex_);
  if (running_ > 0 && (gives_way || gives_way_ == nullptr)) {
    return BoundError(
        {.bound = "benchmarks", .retry_after = absl::Seconds(1)},
        "a benchmark runs already, and a server takes one at a time: try again later");
  }
  if (gives_way_ != nullptr) gives_way_->Cancel(absl::AbortedError("another benchmark came"));
  gives_way_ = gives_way ? run : nullptr;
  if (++running_ == 1 && on_running_) on_running_(true);
  return absl::OkStatus();
}

void Benchmarks::Leave() {
  MutexLock lock(mutex_);
  if (--running_ > 0) return;
  gives_way_ = nullptr;
  if (on_running_) on_running_(false);
}

int64_t Benchmarks::JobsBegun(size_t device) const {
  return engine_.Stats().devices[device].jobs_begun;
}

absl::StatusOr<BenchmarkTotals> Benchmarks::Measure(const BenchmarkSpec& spec, size_t device,
                                                    const BenchmarkRun& run,
                                                    BenchmarkListener& listener) {
  const absl::Time began = SteadyNow();
  const auto stopped = [&]() -> absl::Status {
    if (absl::Status cancelled = run.cancelled(); !cancelled.ok()) return cancelled;
    return spec.stopped ? spec.stopped() : absl::OkStatus();
  };
  const DeviceStats before = engine_.Stats().devices[device];
  const DeviceInfoRecord& info = engine_.devices()[device]->info();
  absl::StatusOr<std::unique_ptr<bench::Backend>> own = bench::CreateBackend(BackendName(info));
  if (!own.ok()) return own.status();
  BoundedBackend backend(*std::move(own), limits_.memory_bytes, stopped);
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
    listener.OnProgress(progress);
  };
  observer.on_rows = [&](absl::Span<const bench::Row> rows) { listener.OnRows(shape, rows); };
  const absl::Status status = bench::RunBenchmark(backend, plan, observer);
  // What it was stopped for, and not what came of that.
  if (absl::Status why = stopped(); !why.ok()) return why;
  if (!status.ok()) return status;
  return BenchmarkTotals{.elapsed = SteadyNow() - began,
                         .jobs = before.streams.used + JobsBegun(device) - before.jobs_begun};
}

}  // namespace gemmd
