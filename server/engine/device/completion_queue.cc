// One mutex, one queue, one thread.
#include "server/engine/device/completion_queue.h"

#include <utility>

#include "server/base/thread_name.h"

namespace gemmd {

CompletionQueue::CompletionQueue(std::string thread_name)
    : thread_([this, name = std::move(thread_name)] {
        SetThreadName(name);
        Run();
      }) {}

CompletionQueue::~CompletionQueue() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyOne();
  thread_.join();
}

void CompletionQueue::Post(CompletionCallback done, absl::Status status) {
  {
    MutexLock lock(mutex_);
    entries_.push_back({std::move(done), std::move(status)});
  }
  changed_.NotifyOne();
}

bool CompletionQueue::HasMore() {
  MutexLock lock(mutex_);
  return !entries_.empty();
}

void CompletionQueue::Run() {
  while (true) {
    Entry entry;
    {
      MutexLock lock(mutex_);
      while (entries_.empty() && !stopping_) changed_.Wait(mutex_);
      if (entries_.empty()) return;
      entry = std::move(entries_.front());
      entries_.pop_front();
    }
    entry.done(std::move(entry.status));
  }
}

}  // namespace gemmd
