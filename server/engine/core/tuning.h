// Tuning tables: read from files, in force for the devices of an engine, and read again.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemm/tuning.h"
#include "server/base/mutex.h"
#include "server/base/workers.h"
#include "server/engine/core/kernel_choices.h"
#include "server/engine/core/report.h"
#include "server/engine/core/tuned_kernels.h"
#include "server/engine/device/device.h"

namespace gemmd {

// One reading of the tables, and the choices made by it. Thread-safe.
class Tuning {
 public:
  // No tables.
  Tuning() = default;
  Tuning(const gemm::TuningTable& table, absl::Span<const std::unique_ptr<Device>> devices);

  // The tables' kernels for a device, by its index; null: none.
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

// The reading in force. A choice of kernels holds one reading until it is made. Thread-safe.
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

// `paths`: files with commas between them, or nothing; after them that of ReadIdleTuning. For the
// same product on the same machine a later file's entry counts. INVALID_ARGUMENT names the flag
// and the file, and in it the line, the field, the value and what is allowed.
absl::StatusOr<gemm::TuningTable> ReadTuningTables(absl::string_view paths,
                                                   const std::string& idle_tuning);

// The file of --idle-tuning. No entries where there is no such file, or `path` is empty. Errors as
// above.
absl::StatusOr<gemm::TuningTable> ReadIdleTuning(const std::string& path);

// Readings of the tables that callers ask for. Reads on a thread of its own, once for all who wait:
// at most one reading is under way, and one waits to begin. Thread-safe.
class TuningReloads {
 public:
  using Done = absl::AnyInvocable<void(const absl::StatusOr<TuningLoad>&)>;
  // Those who may wait for the next reading to begin. Those that gave up waiting count, too.
  static constexpr size_t kMostWaiting = 64;

  explicit TuningReloads(absl::AnyInvocable<absl::StatusOr<TuningLoad>()> read)
      : read_(std::move(read)), reader_("tuning", 1) {}
  ~TuningReloads() { reader_.Stop(); }

  // `done` gets the outcome of a reading that begins after this call, on the reading's thread. It
  // gets RESOURCE_EXHAUSTED at once if too many wait.
  void Read(Done done);

 private:
  void ReadForAll();

  absl::AnyInvocable<absl::StatusOr<TuningLoad>()> read_;  // by the reader alone
  Mutex mutex_;
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mutex_);  // not empty: a reading is scheduled
  Workers reader_;                                     // last: it uses all of the above
};

}  // namespace gemmd
