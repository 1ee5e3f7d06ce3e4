// A stream of the host device: a thread that runs enqueued work in order.
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

namespace gemmd {

// One Record() of an event.
class HostMark {
 public:
  using Clock = std::chrono::steady_clock;

  void Reach();
  void AwaitReached();
  bool reached() const;
  // When the stream reached it. Undefined before.
  Clock::time_point time() const;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool reached_ ABSL_GUARDED_BY(mutex_) = false;
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
  // What a stream is for: see Stream.
  enum class Use : uint8_t { kCopies, kCompute };

  // `completions` must outlive the stream.
  HostStream(const std::string& thread_name, Use use, CompletionQueue& completions);
  // Runs all enqueued work, then ends the thread.
  ~HostStream() override;

  absl::Status Upload(const std::byte* staging, const Pitched& to, size_t offset,
                      size_t bytes) override;
  absl::Status Download(const Pitched& from, size_t offset, size_t bytes,
                        std::byte* staging) override;
  absl::Status Generate(const gemm::GeneratorSpec& spec,
                        const gemm::GeneratorTarget& target) override;
  absl::Status Launch(const gemm::Kernel& kernel, const gemm::Problem& problem,
                      const gemm::Operands& operands, gemm::Workspace workspace,
                      const gemm::LaunchParams& params, Event* transposed) override;
  absl::Status Record(Event& event) override;
  absl::Status Wait(const Event& event) override;
  void Notify(CompletionCallback done, const Event* last) override;

 private:
  using Work = absl::AnyInvocable<void()>;

  void Enqueue(Work work);
  void Run();
  absl::Status CheckComputes() const;
  // Called on the stream's thread.
  void Remember(absl::Status status) { first_error_.Update(std::move(status)); }

  const Use use_;
  CompletionQueue& completions_;
  absl::Status first_error_;  // since the last Notify; the stream's thread alone
  Mutex mutex_;
  CondVar changed_;
  std::deque<Work> work_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gemmd
