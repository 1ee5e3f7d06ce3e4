// How long a call has waited for its client to send. --payload-timeout is compared with
// this.
#pragma once

#include "absl/time/time.h"
#include "server/base/serving_clock.h"

namespace gemmd {

// Runs while a read of the call is under way: while the server reads no further, for whatever
// reason, what has yet to come is not the client's delay. Guarded by its call's lock.
class PayloadClock {
 public:
  void Start() {
    since_ = ServingClock::Now();
    runs_ = true;
  }
  void Stop() {
    run_ = Elapsed();
    runs_ = false;
  }
  absl::Duration Elapsed() const { return runs_ ? run_ + (ServingClock::Now() - since_) : run_; }

 private:
  absl::Duration run_;
  absl::Time since_;
  bool runs_ = false;
};

}  // namespace gemmd
