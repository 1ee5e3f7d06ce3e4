// The time a load test goes by.
#pragma once

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace gemmd::ctl {

// Thread-safe. A test of the schedule brings a clock of its own.
class Clock {
 public:
  virtual ~Clock() = default;

  // Since a fixed point before the first call; never goes back.
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
