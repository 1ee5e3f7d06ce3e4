// How long a call has waited for its client to send. --payload-timeout is compared with
// this.
#pragma once

#include "absl/time/time.h"
#include "server/base/serving_clock.h"

namespace gemmd {

// Runs while the call's messages are read, and stops while the server has yet to take
// received ones: bytes that wait in the server are not the client's delay. Guarded by
// its call's lock.
class PayloadClock {
 public:
  // `held_back`: the server has stopped reading for now.
  void Set(bool held_back) {
    if (held_back == held_back_) return;
    const absl::Time now = ServingClock::Now();
    if (held_back) run_ += now - since_;
    since_ = now;
    held_back_ = held_back;
  }
  absl::Duration Elapsed() const {
    return held_back_ ? run_ : run_ + (ServingClock::Now() - since_);
  }

 private:
  absl::Duration run_;
  absl::Time since_ = ServingClock::Now();
  bool held_back_ = false;
};

}  // namespace gemmd
