#include "server/base/timer.h"

#include "server/base/clock.h"

namespace gemmd {

Timer::Timer() : thread_([this] { Loop(); }) {}

void Timer::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

Timer::Id Timer::Schedule(absl::Time at, absl::AnyInvocable<void()> function) {
  Id id{at};
  bool wake = false;
  {
    MutexLock lock(mutex_);
    id.sequence = next_sequence_++;
    due_.emplace(id, std::move(function));
    wake = at < asleep_until_;
  }
  if (wake) wake_.NotifyOne();
  return id;
}

void Timer::Cancel(const Id& id) {
  absl::AnyInvocable<void()> dropped;  // outlives the lock: it may own much
  MutexLock lock(mutex_);
  const auto it = due_.find(id);
  if (it == due_.end()) return;
  dropped = std::move(it->second);
  due_.erase(it);
}

void Timer::Loop() {
  while (true) {
    absl::AnyInvocable<void()> function;
    {
      MutexLock lock(mutex_);
      while (!stop_ && (due_.empty() || due_.begin()->first.at > SteadyNow())) {
        asleep_until_ = due_.empty() ? absl::InfiniteFuture() : due_.begin()->first.at;
        wake_.WaitUntil(mutex_, asleep_until_);
      }
      asleep_until_ = absl::InfinitePast();
      if (stop_) return;
      function = std::move(due_.begin()->second);
      due_.erase(due_.begin());
    }
    function();
  }
}

}  // namespace gemmd
