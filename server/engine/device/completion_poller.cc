// A loop over the heads of the channels that slows down in three steps: spin,
// nap, block. Waking a blocked thread takes tens of microseconds on a virtual
// machine, as long as a small job takes in all; hence the spin also where
// nothing is pending. Between the blocks of a large transfer, a spin would take from
// it the core that its bytes need.
#include "server/engine/device/completion_poller.h"

#include <sys/prctl.h>

#include <utility>

#include "server/base/thread_name.h"
#include "server/base/waiting.h"

namespace gemmd {
namespace {

constexpr std::chrono::microseconds kNap{20};

}  // namespace

CompletionPoller::CompletionPoller(std::string thread_name, int channels, absl::Duration spin,
                                   CompletionProbe& probe)
    : probe_(probe),
      spin_(absl::ToChronoNanoseconds(spin)),
      channels_(channels),
      thread_([this, name = std::move(thread_name)] {
        SetThreadName(name);
        // Linux rounds sleeps up by 50 us unless told not to.
        prctl(PR_SET_TIMERSLACK, 1UL);
        Run();
      }) {}

CompletionPoller::~CompletionPoller() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    signalled_.store(true, std::memory_order_release);
  }
  changed_.NotifyOne();
  thread_.join();
}

void CompletionPoller::Post(int channel, void* mark, CompletionCallback done, Urgency urgency) {
  Post({.channel = channel, .mark = mark, .urgency = urgency, .done = std::move(done)});
}

void CompletionPoller::PostBorrowed(int channel, void* mark, CompletionCallback done,
                                    Urgency urgency) {
  Post({.channel = channel,
        .mark = mark,
        .borrowed = true,
        .urgency = urgency,
        .done = std::move(done)});
}

void CompletionPoller::PostEnded(int channel, absl::Status status, CompletionCallback done) {
  Post({.channel = channel, .status = std::move(status), .done = std::move(done)});
}

void CompletionPoller::Post(Entry entry) {
  bool blocked = false;
  {
    MutexLock lock(mutex_);
    posted_.push_back(std::move(entry));
    signalled_.store(true, std::memory_order_release);
    blocked = blocked_;
  }
  if (blocked) changed_.NotifyOne();
}

void CompletionPoller::Execute(absl::AnyInvocable<void()> function) {
  {
    MutexLock lock(mutex_);
    if (spinning_ && !stopping_) {
      to_execute_.push_back(std::move(function));
      signalled_.store(true, std::memory_order_release);
      return;
    }
  }
  function();
}

void CompletionPoller::Run() {
  Clock::time_point active = Clock::now() - spin_;  // the last prompt callback
  while (true) {
    Found found;
    TakePosted(found);
    if (pending_ > 0) RunReached(found);
    const Clock::time_point now = Clock::now();
    if (found.prompt) active = now;
    if (found.any) continue;
    if (now - active < spin_ && !signalled_.load(std::memory_order_acquire)) {
      RelaxCpu();
    } else if (pending_ > 0) {
      Nap();
    } else if (!AwaitPost()) {
      return;
    }
  }
}

void CompletionPoller::TakePosted(Found& found) {
  if (!signalled_.load(std::memory_order_acquire)) return;
  {
    MutexLock lock(mutex_);
    taken_.swap(posted_);
    executing_.swap(to_execute_);
    // While stopping the signal stays up, and ends the spin.
    signalled_.store(stopping_, std::memory_order_relaxed);
  }
  found.any = !taken_.empty() || !executing_.empty();
  found.prompt = !executing_.empty();
  for (Entry& entry : taken_) {
    found.prompt |= entry.urgency == Urgency::kPrompt;
    channels_[entry.channel].push_back(std::move(entry));
  }
  pending_ += taken_.size();
  taken_.clear();
  for (absl::AnyInvocable<void()>& function : executing_) function();
  executing_.clear();
}

void CompletionPoller::RunReached(Found& found) {
  for (std::deque<Entry>& entries : channels_) {
    while (!entries.empty() && HasEnded(entries.front())) {
      Entry entry = std::move(entries.front());
      entries.pop_front();
      --pending_;
      found.any = true;
      found.prompt |= entry.urgency == Urgency::kPrompt;
      pace_.OnCallback(Clock::now());
      entry.done(failure_.ok() ? std::move(entry.status) : failure_);
    }
  }
}

bool CompletionPoller::HasEnded(const Entry& entry) {
  if (entry.mark == nullptr) return true;
  if (failure_.ok()) {
    const absl::StatusOr<bool> reached = probe_.Reached(entry.mark);
    if (reached.ok() && !*reached) return false;
    failure_ = reached.status();
  }
  if (!entry.borrowed) probe_.Recycle(entry.mark);
  return true;
}

void CompletionPoller::Nap() {
  {
    MutexLock lock(mutex_);
    if (!posted_.empty() || !to_execute_.empty()) return;
    spinning_ = false;
  }
  std::this_thread::sleep_for(kNap);
  MutexLock lock(mutex_);
  spinning_ = true;
}

bool CompletionPoller::AwaitPost() {
  MutexLock lock(mutex_);
  spinning_ = false;
  blocked_ = true;
  while (posted_.empty() && to_execute_.empty() && !stopping_) changed_.Wait(mutex_);
  blocked_ = false;
  spinning_ = true;
  return !posted_.empty() || !to_execute_.empty();
}

}  // namespace gemmd
