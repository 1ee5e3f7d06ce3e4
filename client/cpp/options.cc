#include "gemmd/client/options.h"

#include <utility>

#include "client/cpp/calls/canceller_state.h"

namespace gemmd::client {

void Canceller::State::Cancel() {
  std::map<uint64_t, std::function<void()>> hooks;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    cancelled_ = true;
    hooks.swap(hooks_);
  }
  for (auto& [id, hook] : hooks) hook();
}

bool Canceller::State::cancelled() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return cancelled_;
}

uint64_t Canceller::State::AddHook(std::function<void()> hook) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t id = ++last_id_;
    if (!cancelled_) {
      hooks_.emplace(id, std::move(hook));
      return id;
    }
  }
  hook();
  return 0;
}

void Canceller::State::RemoveHook(uint64_t id) {
  std::function<void()> removed;  // destroyed with no lock held
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = hooks_.find(id);
  if (it == hooks_.end()) return;
  removed = std::move(it->second);
  hooks_.erase(it);
}

Canceller::Canceller() : state_(std::make_shared<State>()) {}
void Canceller::Cancel() const { state_->Cancel(); }
bool Canceller::cancelled() const { return state_->cancelled(); }

}  // namespace gemmd::client
