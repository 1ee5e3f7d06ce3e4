// How long a call has waited for its client to send: the one rule of
// --payload-timeout.
#pragma once

#include "absl/time/time.h"
#include "server/rpc/call_guard.h"

namespace gemmd {

// Runs while the call's messages are read, and stands while the server has yet to
// take those that came: bytes that wait in the server are not the client's delay.
// Guarded by its call's lock.
class PayloadClock {
 public:
  // `held_back`: the server reads nothing more for now.
  void Set(bool held_back) {
    if (held_back == held_back_) return;
    const SteadyTime now = SteadyNow();
    if (held_back) run_ += absl::FromChrono(now - since_);
    since_ = now;
    held_back_ = held_back;
  }
  absl::Duration Elapsed() const {
    return held_back_ ? run_ : run_ + absl::FromChrono(SteadyNow() - since_);
  }

 private:
  absl::Duration run_;
  SteadyTime since_ = SteadyNow();
  bool held_back_ = false;
};

}  // namespace gemmd
