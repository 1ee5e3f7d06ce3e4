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
  const std::vector<std::string> ids(ids_.begin(), ids_.end());
  for (const std::string& id : ids) {
    if (stopped_) return;
    lock.unlock();
    const absl::Status status = renew_(id);
    lock.lock();
    if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return;
    if (!status.ok()) ids_.erase(id);
  }
}

}  // namespace gemmd::client
