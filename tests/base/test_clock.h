// A clock that moves when the test says so, and a timer's work under it.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>

#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/timer.h"

namespace gemmd {

// SteadyNow() stands still at one time, and moves with Advance, as long as this lives.
// One at a time, made before the threads that read the clock.
class TestClock {
 public:
  TestClock() {
    now_ = absl::ToUnixNanos(SystemSteadyNow());
    steady_clock_source = &Read;
  }
  ~TestClock() { steady_clock_source = &SystemSteadyNow; }
  TestClock(const TestClock&) = delete;
  TestClock& operator=(const TestClock&) = delete;

  void Advance(absl::Duration time) { now_ += absl::ToInt64Nanoseconds(time); }

 private:
  static absl::Time Read() { return absl::FromUnixNanos(now_); }
  static inline std::atomic<int64_t> now_ = 0;
};

// SteadyNow() goes on as it does, and the test sets it forward. A thread that waits by it
// notices when it wakes. One at a time, made before the threads that read the clock.
class JumpClock {
 public:
  JumpClock() {
    ahead_ = 0;
    steady_clock_source = &Read;
  }
  ~JumpClock() { steady_clock_source = &SystemSteadyNow; }
  JumpClock(const JumpClock&) = delete;
  JumpClock& operator=(const JumpClock&) = delete;

  void Jump(absl::Duration time) { ahead_ += absl::ToInt64Nanoseconds(time); }

 private:
  static absl::Time Read() { return SystemSteadyNow() + absl::Nanoseconds(ahead_.load()); }
  static inline std::atomic<int64_t> ahead_ = 0;
};

// Returns once the timer has run everything that is due.
inline void RunDue(Timer& timer) {
  // The thread sleeps by the machine's clock: a function that is long due wakes it.
  timer.Schedule(absl::InfinitePast(), [] {});
  std::promise<void> ran;
  timer.Schedule(SteadyNow(), [&ran] { ran.set_value(); });
  ran.get_future().wait();
}

}  // namespace gemmd
