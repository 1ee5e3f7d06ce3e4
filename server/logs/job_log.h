// Logs each job and transfer at debug level before it is counted, a lost device, and tuning
// tables that were read again.
#pragma once

#include "server/engine/core/report.h"
#include "server/logs/logging.h"

namespace gemmd {

// Passes everything on to `next`, which outlives it.
class JobLog final : public EngineObserver {
 public:
  explicit JobLog(EngineObserver& next);

  void OnJobEnd(const JobReport& report, const absl::Status& outcome) override;
  void OnDeviceTime(absl::string_view caller, absl::Duration time) override {
    next_.OnDeviceTime(caller, time);
  }
  void OnTransferEnd(bool upload, uint64_t bytes, absl::Duration elapsed,
                     const absl::Status& outcome) override;
  // At level error.
  void OnDeviceLost(const DeviceLoss& loss) override;
  void OnTuningReload(const absl::StatusOr<TuningLoad>& load) override;

 private:
  void LogCheck(const JobReport& report, const absl::Status& outcome);
  void LogFailure(const JobReport& report, const absl::Status& outcome);

  EngineObserver& next_;
  LineLimit unlikely_;
  LineLimit failed_;
};

}  // namespace gemmd
