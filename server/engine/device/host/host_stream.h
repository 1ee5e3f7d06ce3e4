// A stream of the host device: a thread that runs enqueued work in order. On a lost device it
// begins no more work.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/base/mutex.h"
#include "server/engine/device/completion_queue.h"
#include "server/engine/device/device.h"
#include "server/engine/device/device_health.h"

namespace gemmd {

class HostStream;

// One Record() of an event.
class HostMark {
 public:
  using Clock = std::chrono::steady_clock;

  // `stream`, where it is to be recorded there, outlives this.
  explicit HostMark(HostStream* stream = nullptr) : stream_(stream) {}
  // The stream that records it; null if it is reached otherwise.
  HostStream* stream() const { return stream_; }

  void Reach();
  void AwaitReached();
  bool reached() const;
  // Whether a stream stands still for it, or has stood.
  bool awaited() const;
  // When the stream reached it. Undefined before.
  Clock::time_point time() const;

 private:
  HostStream* const stream_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool reached_ ABSL_GUARDED_BY(mutex_) = false;
  bool awaited_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point time_ ABSL_GUARDED_BY(mutex_);
};

// Refers to the latest Record(). A Wait() keeps the mark that it found, so a later
// Record() of the same event does not change what it waits for.
class HostEvent final : public Event {
 public:
  // Null if never recorded.
  std::shared_ptr<HostMark> mark() const {
    MutexLock lock(mutex_);
    return mark_;
  }
  void set_mark(std::shared_ptr<HostMark> mark) {
    MutexLock lock(mutex_);
    mark_ = std::move(mark);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<HostMark> mark_ ABSL_GUARDED_BY(mutex_);
};

class HostStream final : public Stream {
 public:
  // The kinds of streams: see Stream.
  enum class Use : uint8_t {
    kCopies,
    kCompute,  // at a niceness of 10
    kQuick,    // computes, before threads of kCompute that want the same core
  };

  // `completions` and `health`, the device's, must outlive the stream.
  HostStream(const std::string& thread_name, Use use, CompletionQueue& completions,
             const DeviceHealth& health);
  // Runs all enqueued work, then ends the thread.
  ~HostStream() override;

  absl::Status Upload(const std::byte* staging, const Pitched& to, size_t offset,
                      size_t bytes) override;
  absl::Status Download(const Pitched& from, size_t offset, size_t bytes,
                        std::byte* staging) override;
  absl::Status Generate(const gemm::GeneratorSpec& spec, const gemm::GeneratorTarget& target,
                        StopFlag stop) override;
  absl::Status Launch(const gemm::Kernel& kernel, const gemm::Problem& problem,
                      const gemm::Operands& operands, gemm::Workspace workspace,
                      const gemm::LaunchParams& params, const LaunchHow& how) override;
  absl::Status Check(const gemm::Check& check) override;
  gemm::CheckOutcome check_outcome() const override { return outcome_; }
  absl::Status Finish(const gemm::Problem& problem, const gemm::Operands& operands,
                      void* accumulators) override;
  absl::Status Record(Event& event) override;
  absl::Status Wait(const Event& event) override;
  void Notify(CompletionCallback done, const Notice& how) override;

  // Has all callbacks called that are pending. The device is lost.
  void TellOfLoss();
  // Whether all that was enqueued has ended.
  bool Idle();

 private:
  using Work = absl::AnyInvocable<void()>;

  // OK where the device takes work: else what Health() says.
  absl::Status Begin() const { return health_.status(); }
  // Runs `work` in its turn, unless the device is lost by then. The thread is not woken for
  // it: Notify and Wait do that, once for all that is enqueued.
  void Enqueue(Work work);
  void EnqueueAlways(Work work);
  void Run();
  // The work before the oldest notice has ended, on the stream's thread.
  void EndNotice();
  absl::Status CheckComputes() const;
  // Called on the stream's thread.
  void Remember(absl::Status status) { first_error_.Update(std::move(status)); }

  const Use use_;
  CompletionQueue& completions_;
  const DeviceHealth& health_;
  absl::Status first_error_;  // since the last Notify; the stream's thread alone
  // Written by the stream's thread; read in callbacks of Notify, which are posted after it.
  gemm::CheckOutcome outcome_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Work> work_ ABSL_GUARDED_BY(mutex_);
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  // Callbacks of Notify that were not posted yet, the oldest first. Posted under the lock,
  // so that they stay in order.
  std::deque<CompletionCallback> notices_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gemmd
