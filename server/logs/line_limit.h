// A bound on log lines that others cause.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "server/base/mutex.h"

namespace gemmd {

struct LineLimitOptions {
  int64_t lines;          // in a period
  absl::Duration period;  // begins with its first line
};

// Thread-safe.
class LineLimit {
 public:
  explicit LineLimit(const LineLimitOptions& options) : options_(options) {}

  // Whether a line may be written `now`, and then how many before it might not. nullopt: it
  // may not, and is counted.
  std::optional<int64_t> Take(absl::Time now);

 private:
  const LineLimitOptions options_;
  Mutex mutex_;
  absl::Time begin_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int64_t written_ ABSL_GUARDED_BY(mutex_) = 0;  // since begin_
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gemmd
