#include "server/rpc/watch/caller_traffic.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/engine/bounds/bound_error.h"
#include "server/engine/bounds/caller_ledger.h"

namespace gemmd {
namespace {

// What a caller may have saved up.
constexpr absl::Duration kBurst = absl::Seconds(1);

}  // namespace

// The rate as a time (the generic cell rate algorithm): each byte moves `paid_until` on by the
// time that it may take.
struct TrafficShare::Account {
  Mutex mutex;
  int64_t calls ABSL_GUARDED_BY(mutex) = 0;
  absl::Time paid_until ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
  uint64_t waiting_bytes ABSL_GUARDED_BY(mutex) = 0;
};

TrafficShare& TrafficShare::operator=(TrafficShare&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  traffic_ = std::exchange(other.traffic_, nullptr);
  account_ = std::move(other.account_);
  quota_ = std::move(other.quota_);
  waiting_bytes_ = std::exchange(other.waiting_bytes_, 0);
  return *this;
}

void TrafficShare::Reset() {
  if (traffic_ == nullptr) return;
  StopWaiting();
  traffic_ = nullptr;
  const std::shared_ptr<Account> account = std::move(account_);
  MutexLock lock(account->mutex);
  --account->calls;
}

void TrafficShare::Charge(uint64_t bytes) {
  if (account_ == nullptr || quota_ == nullptr || quota_->bytes_per_second == kNoBound) return;
  const absl::Duration time =
      absl::Seconds(static_cast<double>(bytes) / static_cast<double>(quota_->bytes_per_second));
  const absl::Time now = SteadyNow();
  MutexLock lock(account_->mutex);
  account_->paid_until = std::max(account_->paid_until, now - kBurst) + time;
}

absl::Time TrafficShare::ready_at() const {
  if (account_ == nullptr || quota_ == nullptr || quota_->bytes_per_second == kNoBound) {
    return absl::InfinitePast();
  }
  MutexLock lock(account_->mutex);
  return account_->paid_until;
}

bool TrafficShare::MayWait(uint64_t bytes) {
  if (account_ == nullptr || quota_ == nullptr) return true;
  MutexLock lock(account_->mutex);
  const uint64_t waiting = account_->waiting_bytes;
  if (waiting > 0 && waiting + bytes > static_cast<uint64_t>(quota_->bytes_per_second))
    return false;
  account_->waiting_bytes += bytes;
  waiting_bytes_ += bytes;
  return true;
}

void TrafficShare::StopWaiting() {
  if (account_ == nullptr) return;
  MutexLock lock(account_->mutex);
  account_->waiting_bytes -= std::exchange(waiting_bytes_, 0);
}

absl::StatusOr<TrafficShare> CallerTraffic::Begin(const CallerQuotaPtr& quota) {
  TrafficShare share;
  {
    MutexLock lock(mutex_);
    DropIdle();
    std::shared_ptr<Account>& account = accounts_[quota->caller];
    if (account == nullptr) account = std::make_shared<Account>();
    MutexLock account_lock(account->mutex);
    if (account->calls < quota->streams) {
      ++account->calls;
      share.traffic_ = this;
      share.account_ = account;
      share.quota_ = quota;
      return share;
    }
  }
  on_reached_("streams");
  return BoundError(
      {.bound = "streams", .caller = quota->caller, .retry_after = kRetrySoon},
      absl::StrCat("streams: ", CallerHas(quota->caller), " ", quota->streams, " of at most ",
                   quota->streams, " calls open (--quotas-file): try again when some have ended"));
}

size_t CallerTraffic::callers() const {
  MutexLock lock(mutex_);
  return accounts_.size();
}

// Now and then: so the map is at most twice as large as it needs to be.
void CallerTraffic::DropIdle() {
  if (accounts_.size() < drop_at_) return;
  const absl::Time now = SteadyNow();
  for (auto it = accounts_.begin(); it != accounts_.end();) {
    Account& account = *it->second;
    account.mutex.Lock();
    const bool idle = account.calls == 0 && account.paid_until <= now - kBurst;
    account.mutex.Unlock();
    it = idle ? accounts_.erase(it) : std::next(it);
  }
  drop_at_ = std::max<size_t>(64, 2 * accounts_.size());
}

}  // namespace gemmd
