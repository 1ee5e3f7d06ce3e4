#include "server/base/workers.h"

#include <utility>

#include "server/base/relax_cpu.h"
#include "server/base/thread_name.h"

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

void Workers::Schedule(absl::AnyInvocable<void()> function) {
  bool wake = false;
  {
    MutexLock lock(mutex_);
    if (!stop_) {
      functions_.push_back(std::exchange(function, nullptr));
      const bool found = looks_ && functions_.size() == 1;
      if (found) found_.store(true, std::memory_order_release);
      wake = !found && asleep_ > 0;
    }
  }
  if (function) return function();
  if (wake) wake_.NotifyOne();
}

void Workers::Loop() {
  while (absl::AnyInvocable<void()> function = Next()) function();
}

absl::AnyInvocable<void()> Workers::Next() {
  MutexLock lock(mutex_);
  if (functions_.empty() && !stop_ && !looks_ && spin_ > spin_.zero()) Look();
  ++asleep_;
  while (functions_.empty() && !stop_) wake_.Wait(mutex_);
  --asleep_;
  if (functions_.empty()) return nullptr;
  absl::AnyInvocable<void()> function = std::move(functions_.front());
  functions_.pop_front();
  return function;
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
