// When each request of a load test is due.
//
// Closed loop: a request is due when a worker is free for it. Open loop: requests are due at a
// constant rate or as a Poisson process, no matter how long earlier ones take. Latency counts from
// then, so the stall of a server shows in every request that waited.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>

#include "absl/time/time.h"
#include "client/ctl/load/clock.h"

namespace gemmd::ctl {

// The gaps between requests of the open loop.
enum class Arrivals {
  kUniform,  // all alike
  kPoisson,  // exponential, as from many independent users
};

struct SchedulePlan {
  // Requests per second; 0: closed loop.
  double rate = 0;
  Arrivals arrivals = Arrivals::kUniform;
  // The rate of the open loop grows from 0 to `rate` in this time, linearly.
  absl::Duration ramp;
  uint64_t seed = 1;  // of Poisson arrivals
  // Requests due within this time of the start are sent, but not counted.
  absl::Duration warmup;
  // The time of the counted part; InfiniteDuration where only `requests` ends the
  // test.
  absl::Duration duration = absl::InfiniteDuration();
  // The number of counted requests; 0 where only `duration` ends the test.
  uint64_t requests = 0;
};

// A request to send.
struct Slot {
  uint64_t index = 0;
  absl::Duration planned;  // since the start
  bool counted = false;    // not part of the warm-up
};

// Hands out the slots of one test. Thread-safe.
class Schedule {
 public:
  // The test starts now by `clock`, which outlives the schedule.
  Schedule(const SchedulePlan& plan, Clock& clock);

  // The next free slot; nullopt when the test is over. In the open loop it may lie
  // in the future; the caller then waits for it.
  std::optional<Slot> Next();

  // Ends the test: Next returns nullopt from now on.
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // Waits for the slot's planned time. False where the test was stopped before.
  bool WaitFor(const Slot& slot) { return WaitUntil(slot.planned); }
  bool WaitUntil(absl::Duration since_start);

  // The time since the start.
  absl::Duration Elapsed() { return clock_.Now() - start_; }

 private:
  // The planned time of a request that has `before` expected ones before it.
  absl::Duration TimeOf(double before) const;

  const SchedulePlan plan_;
  Clock& clock_;
  const absl::Duration start_;
  std::mutex mutex_;  // of those below
  std::mt19937_64 random_;
  uint64_t next_index_ = 0;
  uint64_t counted_ = 0;
  double expected_ = 0;  // requests before the next one
  std::atomic<bool> stopped_{false};
};

}  // namespace gemmd::ctl
