#include "server/base/workers.h"

#include <utility>

#include "server/base/thread_name.h"

namespace gemmd {

Workers::Workers(std::string name, int threads) {
  threads_.reserve(threads);
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, name] {
      SetThreadName(name);
      Loop();
    });
  }
}

void Workers::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
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
      wake = asleep_ > 0;
    }
  }
  if (function) return function();
  if (wake) wake_.NotifyOne();
}

void Workers::Loop() {
  while (true) {
    absl::AnyInvocable<void()> function;
    {
      MutexLock lock(mutex_);
      ++asleep_;
      while (functions_.empty() && !stop_) wake_.Wait(mutex_);
      --asleep_;
      if (functions_.empty()) return;
      function = std::move(functions_.front());
      functions_.pop_front();
    }
    function();
  }
}

}  // namespace gemmd
