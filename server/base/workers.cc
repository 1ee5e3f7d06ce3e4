#include "server/base/workers.h"

#include <utility>

#include "server/base/thread_name.h"
#include "server/base/waiting.h"

namespace gemmd {

Workers::Workers(std::string name, int threads, absl::Duration spin)
    : spin_(absl::ToChronoNanoseconds(spin)) {
  threads_.reserve(threads);
  try {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, name] {
        SetThreadName(name);
        Loop();
      });
    }
  } catch (...) {  // the system has no more threads
    Stop();
    throw;
  }
}

void Workers::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    found_.store(true, std::memory_order_release);
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Workers::Schedule(absl::AnyInvocable<void()> function, Urgency urgency) {
  bool wake = false;
  {
    MutexLock lock(mutex_);
    if (!stop_) {
      functions_.push_back({std::exchange(function, nullptr), urgency});
      const bool found = looks_ && functions_.size() == 1;
      if (found) found_.store(true, std::memory_order_release);
      wake = !found && asleep_ > 0;
    }
  }
  if (function) return function();
  if (wake) wake_.NotifyOne();
}

void Workers::Loop() {
  for (Urgency last = Urgency::kCanWait;;) {
    Scheduled next = Next(last);
    if (!next.function) return;
    next.function();
    last = next.urgency;
  }
}

Workers::Scheduled Workers::Next(Urgency last) {
  MutexLock lock(mutex_);
  const bool may_look = last == Urgency::kPrompt && spin_ > spin_.zero();
  if (functions_.empty() && !stop_ && !looks_ && may_look) Look();
  ++asleep_;
  while (functions_.empty() && !stop_) wake_.Wait(mutex_);
  --asleep_;
  if (functions_.empty()) return {};
  Scheduled next = std::move(functions_.front());
  functions_.pop_front();
  return next;
}

void Workers::Look() {
  looks_ = true;
  found_.store(false, std::memory_order_relaxed);
  mutex_.Unlock();
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + spin_;
  while (!found_.load(std::memory_order_acquire) && Clock::now() < end) RelaxCpu();
  mutex_.Lock();
  looks_ = false;
}

}  // namespace gemmd
