// How many jobs may wait for a stream, and how long. Refusals say which bound was reached.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/engine/bounds/stats.h"
#include "server/engine/policy/fair_queue.h"

namespace gemmd {

// Bounds the ready jobs of all devices together.
class QueueLimit {
 public:
  explicit QueueLimit(int limit) : limit_(limit) {}
  // For a flow that has `held` places already: the last sixteenth of the places is for
  // flows with fewer than that, so that no flow takes all of them.
  bool TryTake(int held);
  void Return();
  // The refusal of a job of a flow that has `held` places, all of them on `device`.
  absl::Status Full(int held, absl::string_view device) const;
  Gauge gauge() const;

 private:
  int reserve() const { return limit_ / 16; }

  const int limit_;
  mutable Mutex mutex_;
  int used_ ABSL_GUARDED_BY(mutex_) = 0;
};

// How fast the streams of a device take jobs from the queue, over the last turns taken
// while jobs waited. Guarded by its owner's lock.
class QueuePace {
 public:
  // A pace is forgotten after a longer time in which no job waited. It may be wrong by now, and a
  // wrong pace that keeps all jobs out would never be corrected.
  static constexpr absl::Duration kQuiet = absl::Seconds(10);

  // A job begins to wait.
  void OnWait(absl::Time now);
  // A waiting job, of this estimated cost, was given a stream.
  void OnTurn(absl::Time now, absl::Duration cost);
  // No job waits, so the time to the next turn says nothing about the device.
  void OnIdle(absl::Time now);
  // A stream of the other lane has taken a job that waited for this one, too.
  void OnMove(absl::Time now) {
    if (unmoved_since_.has_value()) unmoved_since_ = now;
  }
  // No job waits, though all streams may be busy.
  void OnEmpty() { unmoved_since_.reset(); }
  // How long the device will take for jobs of this estimated cost together. Zero before
  // anything was measured.
  absl::Duration TimeFor(absl::Duration cost) const;
  // The mean time between the turns of two jobs.
  absl::Duration between_turns() const { return mean_time_; }
  // How long jobs have waited without a turn. Zero where none waits.
  absl::Duration Unmoved(absl::Time now) const;
  // How long a job waits behind jobs of this estimated cost, by the pace. It is at least as long as
  // the queue has not moved: while long jobs have all streams it does not move.
  absl::Duration WaitBehind(absl::Duration cost, absl::Time now) const;

 private:
  std::optional<absl::Time> last_turn_;
  std::optional<absl::Time> unmoved_since_;
  std::optional<absl::Time> idle_since_;
  absl::Duration mean_time_;
  absl::Duration mean_cost_;
  int turns_ = 0;  // that the means are over
};

// The wait of a job, as it is estimated.
struct QueueWait {
  absl::string_view device;
  absl::Duration time;
  absl::Duration most;   // --max-queue-wait
  int jobs = 0;          // that wait
  int jobs_of_flow = 0;  // of these, the caller's
};

// DEADLINE_EXCEEDED where the job would not end by its deadline without any wait.
absl::Status CheckDeadline(const StreamClaim& claim, absl::string_view device);
// RESOURCE_EXHAUSTED where it waits too long: for `most`, or to end by its deadline.
absl::Status CheckWaitOf(const StreamClaim& claim, const QueueWait& wait);

}  // namespace gemmd
