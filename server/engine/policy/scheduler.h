// Assigns the pooled compute streams of one device to ready jobs, by fair queueing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/engine/bounds/stats.h"
#include "server/engine/device/device.h"
#include "server/engine/policy/fair_queue.h"
#include "server/engine/policy/queue_bounds.h"

namespace gemmd {

class Scheduler;

// Exclusive use of a compute stream, by one job or by several that run together (TakeAlike).
// Destruction passes the stream to the next job. Empty when moved from.
class StreamLease {
 public:
  StreamLease() = default;
  StreamLease(StreamLease&& other) noexcept { *this = std::move(other); }
  StreamLease& operator=(StreamLease&& other) noexcept;
  ~StreamLease() { Reset(); }
  Stream& operator*() const { return *stream_; }
  Stream* operator->() const { return stream_; }
  // Returns the device time that each of its jobs took (DeviceTime): all take the same.
  absl::Duration Reset();

 private:
  friend class Scheduler;
  Scheduler* scheduler_ = nullptr;
  Stream* stream_ = nullptr;
  FairQueue::Which runs_ = FairQueue::Which::kAny;  // the jobs that the stream is for
  absl::Duration begun_;                            // in device time
  std::vector<FairQueue::Charge> charges_;          // of each of its jobs
};

// A job that waits for a stream.
class Runnable {
 public:
  virtual ~Runnable() = default;
  // Called before Run if a stream is free, on the thread that submits the job, for work
  // that is better done there than on the device's thread.
  virtual void Prepare() {}
  // Called once, from any thread, with no lock held.
  virtual void Run(StreamLease stream) = 0;
};

// The time in which a device ran jobs, divided among those that ran together: that of all
// jobs adds up to the time in which the device was not idle. Guarded by its owner's lock.
class DeviceTime {
 public:
  void JobBegins(absl::Time now) { Pass(now), ++running_; }
  void JobEnds(absl::Time now) { Pass(now), --running_; }
  // The device time of a job that runs since the start.
  absl::Duration passed() const { return passed_; }

 private:
  void Pass(absl::Time now) {
    if (running_ > 0) passed_ += (now - last_) / running_;
    last_ = now;
  }

  int running_ = 0;
  absl::Time last_;
  absl::Duration passed_;
};

// Quick jobs (JobCost) may use any stream. The device's quick streams are for them alone, so that
// they need not wait for the end of a large job. A caller in debt (FairQueue) waits even if a quick
// stream is free. Thread-safe. Must outlive its leases.
class Scheduler {
 public:
  // A job is refused if its estimated wait is longer than `max_wait`. As many jobs as
  // there are streams may always wait, so that streams are never idle.
  Scheduler(Device& device, QueueLimit& limit, absl::Duration max_wait);

  // Runs `job` at once if a stream is free (through Device::Execute), else when its turn
  // comes.
  // - RESOURCE_EXHAUSTED: the queue is full, or the estimated wait is too long: for
  //   `max_wait`, or for the job to end by its deadline.
  // - DEADLINE_EXCEEDED: the job would not end by its deadline without any wait.
  absl::Status Submit(std::shared_ptr<Runnable> job, const StreamClaim& claim);
  // How many jobs wait, if the next one in turn for `lease` is alike; else 0.
  int PeekAlike(const StreamLease& lease, absl::FunctionRef<bool(const Runnable*)> alike);
  // Takes at most `most` jobs out of the queue, those next in turn, as long as they are alike. They
  // share `lease` from now on, and their Run is not called. `alike` is called under a lock.
  std::vector<std::shared_ptr<Runnable>> TakeAlike(StreamLease& lease, int most,
                                                   absl::FunctionRef<bool(const Runnable*)> alike);
  // Removes a waiting job from the queue. Does nothing if it has run. Runs quick jobs that waited
  // for its sake alone, so no lock is held.
  void Withdraw(const Runnable* job);

  // The status of Submit by the times that are known now. Called at the header, so that no payload
  // is sent in vain.
  absl::Status CheckWait(const StreamClaim& claim) const;

  // Streams of both kinds.
  Gauge streams() const;
  int queued() const;
  // The number of flows with waiting jobs.
  int waiting_flows() const;
  // FairQueue::Longest.
  std::vector<WaitingFlow> longest_flows(size_t most) const;
  // The number of jobs that were given a stream so far.
  int64_t begun() const;
  // Until all jobs that wait now have begun, and one more could.
  absl::Duration estimated_wait() const;

 private:
  friend class StreamLease;
  // The streams for the same jobs.
  struct Lane {
    std::vector<Stream*> free;
    QueuePace pace;
    int streams = 0;
  };

  // A job that has its stream and is to be run.
  struct Starting {
    std::shared_ptr<Runnable> job;
    StreamLease lease;
  };
  static void Start(Starting next);

  absl::Duration Release(StreamLease& lease);
  StreamLease Lease(FairQueue::Which runs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A job that waited begins with this lease.
  std::shared_ptr<Runnable> Charge(StreamLease& lease, FairQueue::Taken taken, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Empty where no stream is free for the job, or its flow is in debt.
  StreamLease LeaseFree(const StreamClaim& claim) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives free streams to the jobs that may have them.
  std::vector<Starting> Fill(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether such a job would run at once.
  bool HasStreamFor(const StreamClaim& claim) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Lane& LaneOf(FairQueue::Which runs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return runs == FairQueue::Which::kQuick ? quick_ : any_;
  }
  absl::Duration WaitOf(const StreamClaim& claim) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckWaitLocked(const StreamClaim& claim) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Device& device_;
  QueueLimit& limit_;
  const absl::Duration max_wait_;
  mutable Mutex mutex_;
  Lane any_ ABSL_GUARDED_BY(mutex_);
  Lane quick_ ABSL_GUARDED_BY(mutex_);
  FairQueue queue_ ABSL_GUARDED_BY(mutex_);
  DeviceTime device_time_ ABSL_GUARDED_BY(mutex_);
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gemmd
