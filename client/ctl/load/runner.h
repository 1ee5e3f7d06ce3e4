// Sends the requests of a load test at their planned times.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/ctl/load/clock.h"
#include "client/ctl/load/schedule.h"
#include "client/ctl/load/statistics.h"

namespace gemmd::ctl {

// Sends one worker's requests, one at a time, from that worker's thread.
class Caller {
 public:
  virtual ~Caller() = default;

  // Sends the slot's request and returns when it has ended. Latency measures this
  // call.
  virtual Outcome Call(const Slot& slot) = 0;

  // The slot's choice of shape and kernel, below the number of choices of the statistics.
  virtual size_t ChoiceOf(const Slot&) const { return 0; }

  // Checks the product of the last call, if this slot is to be checked. Not part of the
  // latency.
  virtual Verdict Finish(const Slot& slot) = 0;
};

struct RunPlan {
  SchedulePlan schedule;
  // A request of the open loop that no worker has started within this time of its
  // planned start is not sent, and counts as an error. The time that it waited stands among the
  // latencies.
  absl::Duration max_delay = absl::Seconds(1);
};

// Runs a test with a thread for each caller, so the number of callers bounds the
// requests under way. `each_second` is called about once a second with the time
// since the start. `stop` ends the test early, but waits for requests under way.
// Returns when every request has ended, with the time from the end of the warm-up
// until then.
absl::Duration RunLoad(const RunPlan& plan, Clock& clock,
                       absl::Span<const std::unique_ptr<Caller>> callers,
                       const std::atomic<bool>& stop, Statistics& statistics,
                       const std::function<void(absl::Duration)>& each_second);

}  // namespace gemmd::ctl
