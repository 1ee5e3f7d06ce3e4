// Hands the pooled streams of one device to the jobs that are ready, in order.
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

// A compute stream to oneself; given to the next job on destruction. Empty
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
  // Called before Run where a stream is free, on the thread that submits the job:
  // for what is better done there than on the device's own.
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

// How fast a device's queue moves: the mean time from one job's turn to the next,
// over the last turns that were taken while jobs waited. Guarded by its owner's lock.
class QueuePace {
 public:
  // A waiting job was given a stream.
  void OnTurn(absl::Time now);
  // Nobody waits: the time to the next turn says nothing about the device.
  void OnIdle() { last_turn_.reset(); }
  // How long the last of `jobs` that wait will have waited; zero before anything
  // was measured.
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
  // A job is refused where it would wait longer than `max_wait`, by the pace of the
  // queue. As many as there are streams may wait whatever the pace, so that streams
  // never stand still.
  Scheduler(Device& device, QueueLimit& limit, absl::Duration max_wait);

  // Runs `job` at once where a stream is free (through Device::Execute), else
  // when its turn comes.
  // RESOURCE_EXHAUSTED where the queue is full, or too long for its pace.
  absl::Status Submit(std::shared_ptr<Runnable> job);
  // Takes a waiting job out of the queue; does nothing where it has run.
  void Withdraw(const Runnable* job);

  // RESOURCE_EXHAUSTED where Submit would now refuse a job for its wait. Asked at the
  // header, so that its payload need not come first.
  absl::Status CheckWait() const;

  Gauge streams() const;
  int queued() const;
  // Jobs that were given a stream so far.
  int64_t begun() const;
  // What a job that came now would wait.
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
