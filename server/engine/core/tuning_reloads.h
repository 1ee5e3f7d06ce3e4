// Readings of the tuning tables that callers ask for.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "server/base/mutex.h"
#include "server/base/workers.h"
#include "server/engine/core/report.h"

namespace gemmd {

// Reads on a thread of its own, once for all who wait: at most one reading is under way, and one
// waits to begin. Thread-safe.
class TuningReloads {
 public:
  using Done = absl::AnyInvocable<void(const absl::StatusOr<TuningLoad>&)>;
  // Those who may wait for the next reading to begin. Whoever gave up waiting counts, too.
  static constexpr size_t kMostWaiting = 64;

  explicit TuningReloads(absl::AnyInvocable<absl::StatusOr<TuningLoad>()> read)
      : read_(std::move(read)), reader_("tuning", 1) {}
  ~TuningReloads() { reader_.Stop(); }

  // `done` gets what a reading gave that began after this call, on the reading's thread; or
  // RESOURCE_EXHAUSTED at once where too many wait.
  void Read(Done done);

 private:
  void ReadForAll();

  absl::AnyInvocable<absl::StatusOr<TuningLoad>()> read_;  // by the reader alone
  Mutex mutex_;
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mutex_);  // not empty: a reading is scheduled
  Workers reader_;                                     // last: it uses all of the above
};

}  // namespace gemmd
