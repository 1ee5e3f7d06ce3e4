// Hands the pooled streams of one device to the jobs that are ready, in order.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/device.h"
#include "server/engine/mutex.h"
#include "server/engine/stats.h"

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

// Thread-safe. Must outlive its leases.
class Scheduler {
 public:
  Scheduler(Device& device, QueueLimit& limit);

  // Runs `job` at once where a stream is free (through Device::Execute), else
  // when its turn comes.
  // RESOURCE_EXHAUSTED where the queue is full.
  absl::Status Submit(std::shared_ptr<Runnable> job);
  // Takes a waiting job out of the queue; does nothing where it has run.
  void Withdraw(const Runnable* job);

  Gauge streams() const;
  int queued() const;
  // Jobs that were given a stream so far.
  int64_t begun() const;

 private:
  friend class StreamLease;
  void Release(Stream* stream);

  Device& device_;
  const int stream_count_;
  QueueLimit& limit_;
  mutable Mutex mutex_;
  std::vector<Stream*> free_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<Runnable>> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gemmd
