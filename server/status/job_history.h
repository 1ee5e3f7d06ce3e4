// The jobs of the last ten minutes: rates, latencies, and the slowest and failed ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gemm/kernel.h"
#include "server/base/mutex.h"
#include "server/engine/core/report.h"
#include "server/telemetry/label_sets.h"

namespace gemmd {

// A duration's bucket: four for each doubling from 1 us to 64 s, with the ends open.
struct LatencyBuckets {
  static constexpr size_t kCount = 108;
  static size_t IndexOf(absl::Duration duration);
  static double LowerSeconds(size_t index);
};

// Counts of one step. The last name of each list stands for all others.
struct JobCounts {
  int64_t jobs = 0;
  int64_t failed = 0;
  int64_t products = 0;
  double flops = 0;
  double seconds = 0;  // by kernel: in kernels; by device and by caller: of device time
};

// One row of the history: a kernel, a device or a caller.
struct JobSeries {
  std::string name;
  JobCounts total;               // of the window
  std::vector<JobCounts> steps;  // the oldest first
};

struct PhaseLatency {
  absl::string_view phase;
  int64_t count = 0;
  double p50 = 0, p90 = 0, p99 = 0, longest = 0;  // seconds
};

// A job that has ended. Its texts are cut at kMostText bytes.
struct EndedJob {
  static constexpr size_t kMostText = 240;
  uint64_t number = 0;  // of the jobs that have ended since the start
  absl::Time ended;     // SteadyNow()
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string error;
  std::string kernel, device, caller, types, reason;
  int64_t m = 0, n = 0, k = 0, products = 1;
  double tflops = 0;
  PhaseDurations phases;
};

// What is shown of the history at a moment.
struct HistoryView {
  absl::Time end;  // of the last complete step, SteadyNow()
  JobSeries all;
  std::vector<JobSeries> kernels, devices, callers;  // those with jobs, the busiest first
  std::vector<PhaseLatency> last_minute, window;
};

// Counts jobs in a ring of steps. Its memory is allocated at the start, less than 2 MiB, whatever
// the traffic; the jobs that are kept come on top, at most 768 with their texts. Thread-safe.
// Passes everything on to `next`, which outlives it.
class JobHistory final : public EngineObserver {
 public:
  static constexpr absl::Duration kStep = absl::Seconds(5);
  static constexpr size_t kSteps = 120;  // ten minutes
  static constexpr size_t kMostJobs = 64;
  // Kernels, devices and callers that a step tells apart. Further ones are "others".
  static constexpr size_t kMostRows = 16;
  // Devices that have names since the start.
  static constexpr size_t kMostNames = 64;

  JobHistory(EngineObserver& next, absl::Span<const gemm::Kernel* const> catalogue);
  ~JobHistory() override;

  void OnJobEnd(const JobReport& report, const absl::Status& outcome) override;
  void OnDeviceTime(absl::string_view caller, absl::Duration time) override;
  void OnTransferEnd(bool upload, uint64_t bytes, absl::Duration elapsed,
                     const absl::Status& outcome) override;
  void OnDeviceLost(const DeviceLoss& loss) override { next_.OnDeviceLost(loss); }
  void OnTuningReload(const absl::StatusOr<TuningLoad>& load) override {
    next_.OnTuningReload(load);
  }

  HistoryView View() const;
  // The slowest of those that ended in the window, the slowest first.
  std::vector<EndedJob> Slowest() const;
  // The newest first.
  std::vector<EndedJob> LatestFailed() const;

 private:
  static constexpr size_t kPhases = 9;  // of PhaseDurations, with the total
  struct Step;
  // The slowest of one minute, so that those of later minutes are there once they have left.
  struct Minute {
    int64_t number = -1;
    std::vector<EndedJob> jobs;  // a heap, the fastest in front
  };
  static constexpr size_t kMinutes = 11;  // ten, and the one that has begun

  Step& Now() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Keep(const JobReport& report, const absl::Status& outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t DeviceOf(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  EngineObserver& next_;
  const LabelSet kernels_;
  CallerLabels callers_;
  mutable Mutex mutex_;
  std::vector<Step> steps_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> devices_ ABSL_GUARDED_BY(mutex_);
  uint64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Minute> minutes_ ABSL_GUARDED_BY(mutex_);
  std::vector<EndedJob> failed_ ABSL_GUARDED_BY(mutex_);  // a ring
  size_t next_failed_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gemmd
