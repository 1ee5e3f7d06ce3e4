// Benchmarks on the engine's devices, one at a time, beside the engine's jobs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/bench/result/row.h"
#include "kernels/bench/spec/rules.h"
#include "kernels/bench/spec/selection.h"
#include "server/base/mutex.h"
#include "server/base/workers.h"
#include "server/engine/bounds/options.h"
#include "server/engine/engine.h"

namespace gemmd {

// The most candidates of one benchmark: kernels with their types, layout and parameters.
inline constexpr size_t kMaxBenchmarkCandidates = 4096;

struct BenchmarkLimits {
  // The time of one benchmark. Zero: benchmarks are refused.
  absl::Duration time = absl::Minutes(10);
  // Device memory of one benchmark, in addition to the engine's.
  size_t memory_bytes = 4 * kGiB;
};

struct BenchmarkSpec {
  std::string caller;  // who asks for it; empty: nobody knows, or the server itself
  std::string device;  // empty: the first
  std::vector<gemm::bench::Shape> shapes;
  gemm::bench::Selection selection;
  gemm::bench::ComparisonRules rules;
  gemm::GeneratorSpec inputs = gemm::bench::kStandardInputs;
  std::optional<absl::Duration> budget;  // else the limit
  // Asked before every launch; an error ends the benchmark with it. May be null.
  std::function<absl::Status()> stopped;
  // Whether another benchmark that comes ends this one, with ABORTED.
  bool gives_way = false;
};

// The header of a benchmark: the measurements to come.
struct BenchmarkOutline {
  std::string device;
  gemm::bench::Metadata metadata;
  gemm::Machine machine;
  std::string vendor;  // whom kernels are compared with
  std::vector<gemm::bench::Shape> shapes;
  size_t candidates = 0;
  absl::Duration budget;
};

struct BenchmarkTotals {
  absl::Duration elapsed;
  int64_t jobs = 0;  // that the engine ran on the device meanwhile
};

// Called by the benchmark's thread, which waits for each call to return: first the
// outline, then rows and progress, then the end. A benchmark that fails may have only
// the end.
class BenchmarkListener {
 public:
  virtual ~BenchmarkListener() = default;
  virtual void OnOutline(const BenchmarkOutline& outline) = 0;
  virtual void OnProgress(const gemm::bench::Progress& progress) = 0;
  // The rows of one shape, by its index, types and layout.
  virtual void OnRows(size_t shape, absl::Span<const gemm::bench::Row> rows) = 0;
  // The last call. From now on another benchmark may begin.
  virtual void OnEnd(absl::StatusOr<BenchmarkTotals> totals) = 0;
};

// A benchmark that runs or waits for its turn, for people.
struct BenchmarkUnderWay {
  std::string caller;
  std::string device;
  std::string subject;  // "shape 3/125 4096x4096x4096: host_reference"
  absl::Duration age;   // since it was asked for
  bool ending = false;  // it was cancelled, and ends after the launch under way
};

// A benchmark that runs or waits for its turn. Thread-safe.
class BenchmarkRun {
 public:
  BenchmarkRun(std::string caller, std::string device, bool gives_way);

  // Ends the benchmark with `why` before its next step, and a launch of the host within a tile.
  // The first call counts.
  void Cancel(absl::Status why);
  // OK while nobody has cancelled it.
  absl::Status cancelled() const;
  // Set once it is cancelled; for its launches.
  const std::atomic<bool>* stop() const { return &stop_; }
  // Whether another benchmark that comes ends it.
  bool gives_way() const { return gives_way_; }
  // Called by the benchmark's thread: the measurement that begins now.
  void Note(const gemm::bench::Progress& progress);
  BenchmarkUnderWay Describe() const;

 private:
  const std::string caller_, device_;
  const bool gives_way_;
  const absl::Time began_;
  std::atomic<bool> stop_{false};
  mutable Mutex mutex_;
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
  std::optional<gemm::bench::Progress> progress_ ABSL_GUARDED_BY(mutex_);
};

// Thread-safe. Measures on its own thread. The destructor waits for a running
// benchmark, so cancel it first.
class Benchmarks {
 public:
  // `engine` must outlive this. `on_running` is called when a benchmark begins and when
  // it ends; it must be quick, and may be null.
  Benchmarks(Engine& engine, const BenchmarkLimits& limits, std::function<void(bool)> on_running);

  // Starts a benchmark. Errors that it returns: FAILED_PRECONDITION where benchmarks are refused;
  // INVALID_ARGUMENT for an unknown device; UNAVAILABLE for a lost one; RESOURCE_EXHAUSTED for a
  // budget above the limit, or while another benchmark runs that neither gives way nor was
  // cancelled. One that was cancelled ends after the launch under way, which may be long; until
  // then the next one waits for the thread. Errors that OnEnd gets: NOT_FOUND for an unknown kernel
  // or family; FAILED_PRECONDITION for a kernel that the device cannot run; INVALID_ARGUMENT for
  // too many candidates, or for a parameter that no candidate has.
  absl::StatusOr<std::shared_ptr<BenchmarkRun>> Start(BenchmarkSpec spec,
                                                      std::shared_ptr<BenchmarkListener> listener);

  const BenchmarkLimits& limits() const { return limits_; }
  // The one that runs, then those that wait for it to end. Empty: none.
  std::vector<BenchmarkUnderWay> UnderWay() const;

 private:
  absl::Status Enter(const std::shared_ptr<BenchmarkRun>& run);
  // Belongs to the run that entered first.
  void Leave();
  // The number of jobs on the device since the server's start.
  int64_t JobsBegun(size_t device) const;
  absl::StatusOr<BenchmarkTotals> Measure(const BenchmarkSpec& spec, size_t device,
                                          BenchmarkRun& run, BenchmarkListener& listener);

  Engine& engine_;
  const BenchmarkLimits limits_;
  const std::function<void(bool)> on_running_;
  mutable Mutex mutex_;
  // In the order in which the thread takes them. All but the last are to end.
  std::deque<std::shared_ptr<BenchmarkRun>> runs_ ABSL_GUARDED_BY(mutex_);
  Workers thread_{"benchmark", 1};  // uses what is above it
};

}  // namespace gemmd
