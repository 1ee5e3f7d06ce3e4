// Assigns the pooled compute streams of one device to ready jobs, in order.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/engine/bounds/stats.h"
#include "server/engine/device/device.h"

namespace gemmd {

class Scheduler;

// Exclusive use of a compute stream. Destruction passes the stream to the next job. Empty
// when moved from.
class StreamLease {
 public:
  StreamLease() = default;
  StreamLease(StreamLease&& other) noexcept { *this = std::move(other); }
  StreamLease& operator=(StreamLease&& other) noexcept;
  ~StreamLease() { Reset(); }
  Stream& operator*() const { return *stream_; }
  Stream* operator->() const { return stream_; }
  void Reset();

 private:
  friend class Scheduler;
  StreamLease(Scheduler* scheduler, Stream* stream) : scheduler_(scheduler), stream_(stream) {}
  Scheduler* scheduler_ = nullptr;
  Stream* stream_ = nullptr;
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

// Bounds the ready jobs of all devices together.
class QueueLimit {
 public:
  explicit QueueLimit(int limit) : limit_(limit) {}
  bool TryTake();
  void Return();
  Gauge gauge() const;

 private:
  const int limit_;
  mutable Mutex mutex_;
  int used_ ABSL_GUARDED_BY(mutex_) = 0;
};

// How fast a device's queue moves: the mean time between the turns of two jobs, over the
// last turns taken while jobs waited. Guarded by its owner's lock.
class QueuePace {
 public:
  // A waiting job was given a stream.
  void OnTurn(absl::Time now);
  // No job waits, so the time to the next turn says nothing about the device.
  void OnIdle() { last_turn_.reset(); }
  // The estimated wait of the last of `jobs` waiting jobs. Zero before anything was
  // measured.
  absl::Duration TimeFor(size_t jobs) const { return mean_ * static_cast<double>(jobs); }
  absl::Duration mean() const { return mean_; }

 private:
  std::optional<absl::Time> last_turn_;
  absl::Duration mean_;
  int turns_ = 0;  // that the mean is over
};

// Thread-safe. Must outlive its leases.
class Scheduler {
 public:
  // A job is refused if its estimated wait is longer than `max_wait`. As many jobs as
  // there are streams may always wait, so that streams are never idle.
  Scheduler(Device& device, QueueLimit& limit, absl::Duration max_wait);

  // Runs `job` at once if a stream is free (through Device::Execute), else when its turn
  // comes. RESOURCE_EXHAUSTED if the queue is full, or the estimated wait is too long.
  absl::Status Submit(std::shared_ptr<Runnable> job);
  // Removes a waiting job from the queue. Does nothing if it has run.
  void Withdraw(const Runnable* job);

  // RESOURCE_EXHAUSTED if Submit would now refuse a job for its wait. Called at the
  // header, so that no payload is sent in vain.
  absl::Status CheckWait() const;

  Gauge streams() const;
  int queued() const;
  // The number of jobs that were given a stream so far.
  int64_t begun() const;
  // The estimated wait of a new job.
  absl::Duration estimated_wait() const;

 private:
  friend class StreamLease;
  void Release(Stream* stream);
  absl::Duration WaitOfNext() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckWaitLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Device& device_;
  const int stream_count_;
  QueueLimit& limit_;
  const absl::Duration max_wait_;
  mutable Mutex mutex_;
  std::vector<Stream*> free_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<Runnable>> waiting_ ABSL_GUARDED_BY(mutex_);
  QueuePace pace_ ABSL_GUARDED_BY(mutex_);
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gemmd
