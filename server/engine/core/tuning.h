// What the tuning tables have for the devices of an engine, and which reading of them is in force.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gemm/tuning.h"
#include "server/base/mutex.h"
#include "server/engine/core/kernel_choices.h"
#include "server/engine/core/report.h"
#include "server/engine/core/tuned_kernels.h"
#include "server/engine/device/device.h"

namespace gemmd {

// One reading of the tables, and what was chosen by it. Thread-safe.
class Tuning {
 public:
  // No tables.
  Tuning() = default;
  Tuning(const gemm::TuningTable& table, absl::Span<const std::unique_ptr<Device>> devices);

  // What the tables have for a device, by its index; null: nothing.
  const TunedKernels* For(size_t device) const {
    return devices_.empty() ? nullptr : &devices_[device];
  }
  const TuningLoad& load() const { return load_; }
  // Null for a device that the constructor did not get.
  KernelChoices* ChoicesOn(size_t device) const {
    return device < choices_.size() ? choices_[device].get() : nullptr;
  }

 private:
  std::vector<TunedKernels> devices_;  // empty: no entries
  std::vector<std::unique_ptr<KernelChoices>> choices_;
  TuningLoad load_;
};

// The reading in force. Whoever chooses kernels holds one reading meanwhile, so that one choice
// is made by one. Thread-safe.
class CurrentTuning {
 public:
  // Never null.
  std::shared_ptr<const Tuning> Get() const {
    MutexLock lock(mutex_);
    return tuning_;
  }
  void Set(std::shared_ptr<const Tuning> tuning) {
    MutexLock lock(mutex_);
    tuning_.swap(tuning);  // the old one is destroyed unlocked
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const Tuning> tuning_ ABSL_GUARDED_BY(mutex_) = std::make_shared<const Tuning>();
};

}  // namespace gemmd
