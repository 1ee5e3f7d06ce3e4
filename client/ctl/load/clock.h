// The clock of a load test.
#pragma once

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace gemmd::ctl {

// Thread-safe. A test of the schedule uses its own clock.
class Clock {
 public:
  virtual ~Clock() = default;

  // The time since a fixed point before the first call. Never goes back.
  virtual absl::Duration Now() = 0;
  virtual void SleepFor(absl::Duration duration) = 0;
};

// The machine's steady clock.
class SteadyClock : public Clock {
 public:
  absl::Duration Now() override {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
  void SleepFor(absl::Duration duration) override { absl::SleepFor(duration); }
};

}  // namespace gemmd::ctl
