// What the log and the metrics say of idle tuning.
#pragma once

#include "server/benchmark/idle_tuner.h"
#include "server/telemetry/metrics.h"

namespace gemmd {

// `metrics` outlives it.
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
