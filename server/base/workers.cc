#include "server/base/workers.h"

namespace gemmd {

Workers::Workers(int threads) {
  threads_.reserve(threads);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

Workers::~Workers() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::Schedule(absl::AnyInvocable<void()> function) {
  {
    MutexLock lock(mutex_);
    functions_.push_back(std::move(function));
  }
  wake_.NotifyOne();
}

void Workers::Loop() {
  while (true) {
    absl::AnyInvocable<void()> function;
    {
      MutexLock lock(mutex_);
      while (functions_.empty() && !stop_) wake_.Wait(mutex_);
      if (functions_.empty()) return;
      function = std::move(functions_.front());
      functions_.pop_front();
    }
    function();
  }
}

}  // namespace gemmd
