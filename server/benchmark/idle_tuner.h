// Measures what callers need while nobody calls, for the file of --idle-tuning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gemm/tuning.h"
#include "kernels/bench/result/tuning_rounds.h"
#include "server/base/mutex.h"
#include "server/benchmark/benchmarks.h"
#include "server/engine/engine.h"

namespace gemmd {

// The server is idle after so long without a job or a transfer.
inline constexpr absl::Duration kIdleTime = absl::Seconds(2);
// A product whose measurement was ended so often for callers is given up.
inline constexpr int kIdleTries = 3;
// The measurements of a product: as gemmctl tune does by default, but within a time.
inline constexpr size_t kIdleBestEstimates = 8;
inline constexpr int kIdleRounds = 3;
inline constexpr absl::Duration kIdleRoundTime = absl::Seconds(5);

// How the measurement of a product ended.
enum class IdleTuningOutcome : uint8_t {
  kTuned,
  kInterrupted,  // callers came; it is measured again
  kGivenUp,      // callers came for the last time
  kFailed,       // no kernel could be measured
};
absl::string_view Name(IdleTuningOutcome outcome);  // "given_up"

struct IdleTuningReport {
  IdleTuningOutcome outcome = IdleTuningOutcome::kFailed;
  gemm::TunedProduct product{};
  gemm::TunedChoice choice;              // of one that was tuned
  std::optional<double> before_seconds;  // of what was taken until now, where it was measured
  absl::Status why;                      // not OK unless it was tuned
};

// "4096x4096x4096 f16:f16:f16:f32 nn".
std::string TextOf(const gemm::TunedProduct& product);

// Called by the tuner's thread, with no lock held.
class IdleTuningListener {
 public:
  virtual ~IdleTuningListener() = default;
  virtual void OnRunning(bool running) = 0;
  virtual void OnProduct(const IdleTuningReport& report) = 0;
  // The file could not be written. The measurements are kept for the next time.
  virtual void OnUnwritten(const absl::Status& why) = 0;
};

// Takes the products of Engine::ListTraffic, those first that took the most time, each once, on the
// first healthy device. A benchmark of it ends before its next launch when a job or transfer is
// admitted, and for another benchmark. A product's measurements count when all rounds are complete.
class IdleTuner {
 public:
  // Benchmarks::Start, with its errors.
  using StartBenchmark = std::function<absl::StatusOr<std::shared_ptr<BenchmarkRun>>(
      BenchmarkSpec, std::shared_ptr<BenchmarkListener>)>;

  // `engine`, what `start` uses and `listener` outlive this. `longest`: of one benchmark.
  IdleTuner(Engine& engine, StartBenchmark start, absl::Duration longest, std::string file,
            IdleTuningListener& listener);
  // Waits for the launch under way.
  ~IdleTuner();
  IdleTuner(const IdleTuner&) = delete;
  IdleTuner& operator=(const IdleTuner&) = delete;

  // Starts the thread, which looks several times a second. Call once.
  void Start();
  // Nothing is measured from now on. Does not wait. Thread-safe.
  void Stop();
  // Looks whether the server is idle, and where it is measures one product. Called by the thread;
  // tests call it in its place.
  void Look();

 private:
  void Loop();
  // Whether nothing has arrived and nothing was under way for kIdleTime.
  bool IsIdle();
  // That is to be measured.
  std::optional<gemm::TunedProduct> Next() const;
  void Tune(const gemm::TunedProduct& product);
  absl::StatusOr<KernelRanking> Rank(const gemm::TunedProduct& product) const;
  // RESOURCE_EXHAUSTED: others measure. ABORTED: callers came. CANCELLED: the server stops.
  absl::StatusOr<IdleTuningReport> Measure(const gemm::TunedProduct& product,
                                           const KernelRanking& ranking);
  absl::Status MeasureRound(const BenchmarkSpec& spec, gemm::bench::TuningRounds& rounds);
  // Why a benchmark that began when `arrived_` was read must end; else OK.
  absl::Status WhyStop() const;
  void ReportUnmeasured(const gemm::TunedProduct& product, absl::Status why);
  void Keep(const gemm::Machine& machine, const IdleTuningReport& report);

  Engine& engine_;
  const StartBenchmark start_;
  const absl::Duration round_time_;
  const std::string file_;
  IdleTuningListener& listener_;

  // Used by the thread that looks. `arrived_` is also read by the benchmark that it waits for.
  int64_t arrived_ = 0;
  absl::Time idle_since_ = absl::InfiniteFuture();  // infinite: not at the last look
  std::map<gemm::TunedProduct, int> tries_;         // kIdleTries: no more
  gemm::TuningTable found_;

  mutable Mutex mutex_;
  CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace gemmd
