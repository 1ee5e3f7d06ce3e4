// The state that all copies of a Canceller share.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "gemmd/client/options.h"

namespace gemmd::client {

// Thread-safe. A hook may still be running when RemoveHook returns, so it must hold
// what it uses by a weak or a shared pointer.
class Canceller::State {
 public:
  // Runs every hook once, with no lock held.
  void Cancel();
  bool cancelled() const;

  // `hook` runs when Cancel is called, or at once where it was called before.
  uint64_t AddHook(std::function<void()> hook);
  void RemoveHook(uint64_t id);

 private:
  mutable std::mutex mutex_;
  bool cancelled_ = false;
  uint64_t last_id_ = 0;
  std::map<uint64_t, std::function<void()>> hooks_;
};

// Registers a hook for the lifetime of this object.
class CancelHook {
 public:
  CancelHook() = default;
  CancelHook(const std::optional<Canceller>& canceller, std::function<void()> hook) {
    if (!canceller) return;
    state_ = canceller->state_;
    id_ = state_->AddHook(std::move(hook));
  }
  CancelHook(const CancelHook&) = delete;
  CancelHook& operator=(const CancelHook&) = delete;
  ~CancelHook() {
    if (state_ != nullptr) state_->RemoveHook(id_);
  }

 private:
  std::shared_ptr<Canceller::State> state_;
  uint64_t id_ = 0;
};

}  // namespace gemmd::client
