// Makes the requests of a load test, on time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "client/ctl/load/clock.h"
#include "client/ctl/load/schedule.h"
#include "client/ctl/load/statistics.h"

namespace gemmd::ctl {

// Makes one worker's requests, one at a time, from that worker's thread.
class Caller {
 public:
  virtual ~Caller() = default;

  // Makes the slot's request and returns when it has ended. This is what
  // latency measures.
  virtual Outcome Call(const Slot& slot) = 0;

  // Checks the product of the call just made, where this slot is to be checked,
  // and lets go of what the call left on the server. Not part of the latency.
  virtual Verdict Finish(const Slot& slot) = 0;
};

struct RunPlan {
  SchedulePlan schedule;
  // A request of the open loop that no worker took up within this time of its
  // planned start is not sent, and counts as an error.
  absl::Duration max_delay = absl::Seconds(1);
};

// Runs a test with a thread for each caller, which bounds the requests
// outstanding. `each_second` is called about once a second with the time since
// the start. Returns when every request has ended, with the time from the end
// of the warm-up to then. `stop` ends the test early: requests under way are
// waited for.
absl::Duration RunLoad(const RunPlan& plan, Clock& clock,
                       const std::vector<std::unique_ptr<Caller>>& callers,
                       const std::atomic<bool>& stop, Statistics& statistics,
                       const std::function<void(absl::Duration)>& each_second);

}  // namespace gemmd::ctl
