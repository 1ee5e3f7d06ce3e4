#include "server/engine/core/tuning_reloads.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/engine/bounds/bound_error.h"

namespace gemmd {

void TuningReloads::Read(Done done) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    if (waiting_.size() < kMostWaiting) {
      first = waiting_.empty();
      waiting_.push_back(std::move(done));
      done = nullptr;
    }
  }
  if (done != nullptr) {
    return done(BoundError({.bound = "waiting-reloads", .retry_after = kRetrySoon},
                           absl::StrCat(kMostWaiting,
                                        " calls wait already for the tuning tables to be read, the "
                                        "most that may: try again later")));
  }
  if (first) reader_.Schedule([this] { ReadForAll(); });
}

void TuningReloads::ReadForAll() {
  std::vector<Done> waited;
  {
    MutexLock lock(mutex_);
    waited.swap(waiting_);
  }
  const absl::StatusOr<TuningLoad> load = read_();
  for (Done& done : waited) done(load);
}

}  // namespace gemmd
