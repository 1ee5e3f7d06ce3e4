#include "server/rpc/watch/live_calls.h"

#include <utility>

#include "server/base/clock.h"

namespace gemmd {

bool LiveCalls::Add(std::shared_ptr<LiveCall> call) {
  LiveCall* const raw = call.get();
  bool draining;
  {
    MutexLock lock(mutex_);
    calls_.emplace(raw, std::move(call));
    draining = draining_;
  }
  if (draining) raw->BeginDrain();
  return draining;
}

void LiveCalls::Remove(LiveCall* call) {
  std::shared_ptr<LiveCall> last;
  {
    MutexLock lock(mutex_);
    const auto found = calls_.find(call);
    last = std::move(found->second);
    calls_.erase(found);
    if (calls_.empty()) removed_.NotifyAll();
  }
}

std::vector<std::shared_ptr<LiveCall>> LiveCalls::All() const {
  std::vector<std::shared_ptr<LiveCall>> calls;
  calls.reserve(calls_.size());
  for (const auto& [raw, call] : calls_) calls.push_back(call);
  return calls;
}

void LiveCalls::CheckWaits(const Patience& patience) {
  std::vector<std::shared_ptr<LiveCall>> calls;
  {
    MutexLock lock(mutex_);
    calls = All();
  }
  for (const std::shared_ptr<LiveCall>& call : calls) call->CheckWaits(patience);
}

void LiveCalls::Drain() {
  std::vector<std::shared_ptr<LiveCall>> calls;
  {
    MutexLock lock(mutex_);
    draining_ = true;
    calls = All();
  }
  for (const std::shared_ptr<LiveCall>& call : calls) call->BeginDrain();
}

bool LiveCalls::WaitUntilNone(absl::Time deadline) {
  MutexLock lock(mutex_);
  while (!calls_.empty()) {
    if (SteadyNow() >= deadline) return false;
    removed_.WaitUntil(mutex_, deadline);
  }
  return true;
}

}  // namespace gemmd
