#include "server/logs/line_limit.h"

#include <utility>

namespace gemmd {

std::optional<int64_t> LineLimit::Take(absl::Time now) {
  MutexLock lock(mutex_);
  if (now - begin_ >= options_.period) {
    begin_ = now;
    written_ = 0;
  }
  if (written_ == options_.lines) {
    ++left_out_;
    return std::nullopt;
  }
  ++written_;
  return std::exchange(left_out_, 0);
}

}  // namespace gemmd
