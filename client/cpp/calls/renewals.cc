#include "client/cpp/calls/renewals.h"

#include <utility>

namespace gemmd::client {
namespace {

constexpr int kBeats = 4;  // within a time to live

}  // namespace

void Renewals::Add(std::string id) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_ || ttl_ <= absl::ZeroDuration()) return;
  ids_.insert(std::move(id));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
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
  }
  stopping_.notify_all();
  if (thread.joinable()) thread.join();
}

void Renewals::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto beat = absl::ToChronoNanoseconds(ttl_ / kBeats);
  while (!stopping_.wait_for(lock, beat, [this] { return stopped_; })) RenewAll(lock);
}

void Renewals::RenewAll(std::unique_lock<std::mutex>& lock) {
  // Behind the one that ended the last beat: one that fails each time keeps no other from its turn.
  const auto first = ids_.upper_bound(last_);
  std::vector<std::string> ids(first, ids_.end());
  ids.insert(ids.end(), ids_.begin(), first);
  for (const std::string& id : ids) {
    if (stopped_) return;
    last_ = id;
    lock.unlock();
    const absl::Status status = renew_(id);
    lock.lock();
    if (absl::IsNotFound(status) || absl::IsDataLoss(status)) {
      ids_.erase(id);
    } else if (!status.ok()) {
      return;
    }
  }
}

}  // namespace gemmd::client
