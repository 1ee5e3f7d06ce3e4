#include "client/cpp/calls/renewals.h"

#include <system_error>
#include <utility>
#include <vector>

namespace gemmd::client {
namespace {

constexpr int kBeats = 4;  // within a time to live

}  // namespace

void Renewals::Add(std::string id) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_ || ttl_ <= absl::ZeroDuration()) return;
  ids_.insert(std::move(id));
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {
    // Unrenewed, the matrix still works, and expires after its time to live.
  }
}

void Renewals::Remove(const std::string& id) {
  std::lock_guard<std::mutex> lock(mutex_);
  ids_.erase(id);
}

void Renewals::Stop() {
  std::thread thread;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    thread = std::move(thread_);
    changed_.notify_all();
  }
  if (thread.joinable()) thread.join();
}

void Renewals::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto beat = absl::ToChronoNanoseconds(ttl_ / kBeats);
  while (!changed_.wait_for(lock, beat, [this] { return stopped_; })) RenewAll(lock);
}

void Renewals::RenewAll(std::unique_lock<std::mutex>& lock) {
  // Begin behind the one that ended the last beat, so that one that always fails blocks no other.
  const auto first = ids_.upper_bound(last_);
  std::vector<std::string> ids(first, ids_.end());
  ids.insert(ids.end(), ids_.begin(), first);
  unanswered_ = false;
  for (const std::string& id : ids) {
    changed_.wait(lock, [this] { return under_way_ < kAtOnce || stopped_; });
    if (stopped_ || unanswered_) break;
    last_ = id;
    ++under_way_;
    lock.unlock();
    renew_(id, [this, id](const absl::Status& status) { Ended(id, status); });
    lock.lock();
  }
  changed_.wait(lock, [this] { return under_way_ == 0; });
}

void Renewals::Ended(const std::string& id, const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  --under_way_;
  if (absl::IsNotFound(status) || absl::IsDataLoss(status)) {
    ids_.erase(id);
  } else if (!status.ok() && !absl::IsResourceExhausted(status)) {
    unanswered_ = true;
  }
  // Under the lock: once the thread has seen it, this may be destroyed.
  changed_.notify_all();
}

}  // namespace gemmd::client
