// Serialises the calls to a listener, and makes the last call last.
#pragma once

#include <utility>

#include "absl/functional/any_invocable.h"
#include "server/base/mutex.h"

namespace gemmd {

// A listener is called by the completion thread, by threads that release results, and by
// threads that cancel. Enter and Leave bracket an ordinary call. Close makes the last
// call, at once or, if a call is under way, when that leaves. Thread-safe.
class ListenerGate {
 public:
  // False once closed: the caller must not call the listener.
  bool Enter() {
    MutexLock lock(mutex_);
    if (closed_) return false;
    inside_ = true;
    return true;
  }
  void Leave() {
    absl::AnyInvocable<void()> last;
    {
      MutexLock lock(mutex_);
      inside_ = false;
      last = std::exchange(last_, nullptr);
    }
    if (last) last();
  }
  // Only the first call counts.
  void Close(absl::AnyInvocable<void()> last) {
    {
      MutexLock lock(mutex_);
      if (closed_) return;
      closed_ = true;
      if (inside_) {
        last_ = std::move(last);
        return;
      }
    }
    last();
  }

 private:
  Mutex mutex_;
  bool inside_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::AnyInvocable<void()> last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
