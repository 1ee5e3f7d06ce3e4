// The log of tuning tables, of measurements before the first call, and of idle tuning.
#pragma once

#include "absl/status/statusor.h"
#include "server/benchmark/first_times.h"
#include "server/benchmark/idle_tuner.h"
#include "server/engine/core/report.h"
#include "server/telemetry/metrics.h"

namespace gemmd {

// At the start: what the devices can use of --tuning-tables; nothing where there is none.
void LogTuning(const TuningLoad& load);

// The outcome of reading them again.
void LogTuningReload(const absl::StatusOr<TuningLoad>& load);

void LogFirstTimes(const FirstTimes& times);

// Writes idle tuning to the log and the metrics. `metrics` outlives it.
class IdleTuningLog final : public IdleTuningListener {
 public:
  explicit IdleTuningLog(Metrics& metrics) : metrics_(metrics) {}

  void OnRunning(bool running) override { metrics_.OnIdleTuning(running); }
  void OnProduct(const IdleTuningReport& report) override;
  // The log has it once.
  void OnUnwritten(const absl::Status& why) override;

 private:
  Metrics& metrics_;
  bool told_ = false;  // that the file cannot be written
};

}  // namespace gemmd
