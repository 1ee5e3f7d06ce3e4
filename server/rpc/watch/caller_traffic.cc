#include "server/rpc/watch/caller_traffic.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/engine/bounds/bound_error.h"
#include "server/engine/bounds/caller_quota.h"

namespace gemmd {
namespace {

// What a caller may have saved up.
constexpr absl::Duration kBurst = absl::Seconds(1);

}  // namespace

// The rate as a bucket that leaks (the generic cell rate algorithm). It holds bytes, not time, so
// that another rate also holds for what is owed.
//
// One caller may have credentials with quotas of their own. Those without a rate neither count nor
// wait, and leave the account to the others.
struct TrafficShare::Account {
  explicit Account(std::string caller) : caller(std::move(caller)) {}

  const std::string caller;
  Mutex mutex;
  int64_t open ABSL_GUARDED_BY(mutex) = 0;
  int64_t answered ABSL_GUARDED_BY(mutex) = 0;  // that gRPC is not done with
  int64_t rate ABSL_GUARDED_BY(mutex) =
      kNoBound;  // bytes a second, by the latest quota that has one
  // Bytes, at the time `as_of`. Below 0: what is saved up.
  double owed ABSL_GUARDED_BY(mutex) = -std::numeric_limits<double>::infinity();
  absl::Time as_of ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
  uint64_t waiting_bytes ABSL_GUARDED_BY(mutex) = 0;

  void Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const absl::Time now = SteadyNow();
    const auto bytes_per_second = static_cast<double>(rate);
    const double saved_up = -absl::ToDoubleSeconds(kBurst) * bytes_per_second;
    owed = std::max(owed - absl::ToDoubleSeconds(now - as_of) * bytes_per_second, saved_up);
    // No quota had a rate yet.
    if (rate == kNoBound) owed = -std::numeric_limits<double>::infinity();
    as_of = now;
  }
  void SetRate(int64_t bytes_per_second) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (bytes_per_second == kNoBound || rate == bytes_per_second) return;
    Settle();
    rate = bytes_per_second;
  }
  void Charge(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Settle();
    owed += static_cast<double>(bytes);
  }
  // Whether nothing is owed, and nothing more can be saved up.
  bool Full() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Settle();
    return owed <= -absl::ToDoubleSeconds(kBurst) * static_cast<double>(rate);
  }
};

TrafficShare& TrafficShare::operator=(TrafficShare&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  traffic_ = std::exchange(other.traffic_, nullptr);
  account_ = std::move(other.account_);
  bounded_ = other.bounded_;
  answered_ = other.answered_;
  waiting_bytes_ = std::exchange(other.waiting_bytes_, 0);
  return *this;
}

void TrafficShare::Reset() {
  if (traffic_ == nullptr) return;
  StopWaiting();
  traffic_ = nullptr;
  const std::shared_ptr<Account> account = std::move(account_);
  MutexLock lock(account->mutex);
  --(answered_ ? account->answered : account->open);
}

void TrafficShare::Answered() {
  if (account_ == nullptr || std::exchange(answered_, true)) return;
  MutexLock lock(account_->mutex);
  --account_->open;
  ++account_->answered;
}

void TrafficShare::Use(const CallerQuotaPtr& quota) {
  if (account_ == nullptr || quota->caller != account_->caller) return;
  bounded_ = quota->bytes_per_second != kNoBound;
  if (!bounded_) return;
  MutexLock lock(account_->mutex);
  account_->SetRate(quota->bytes_per_second);
}

void TrafficShare::Charge(uint64_t bytes) {
  if (account_ == nullptr || !bounded_) return;
  MutexLock lock(account_->mutex);
  account_->Charge(bytes);
}

absl::Time TrafficShare::ready_at() const {
  if (account_ == nullptr || !bounded_) return absl::InfinitePast();
  MutexLock lock(account_->mutex);
  if (account_->owed <= 0) return absl::InfinitePast();
  return account_->as_of + absl::Seconds(account_->owed / static_cast<double>(account_->rate));
}

uint64_t TrafficShare::rate() const {
  if (account_ == nullptr) return 0;
  MutexLock lock(account_->mutex);
  return static_cast<uint64_t>(account_->rate);
}

bool TrafficShare::MayWait(uint64_t bytes) {
  if (account_ == nullptr) return true;
  MutexLock lock(account_->mutex);
  const uint64_t waiting = account_->waiting_bytes;
  if (waiting > 0 && waiting + bytes > static_cast<uint64_t>(account_->rate)) return false;
  account_->waiting_bytes += bytes;
  waiting_bytes_ += bytes;
  return true;
}

void TrafficShare::StopWaiting() {
  if (account_ == nullptr) return;
  MutexLock lock(account_->mutex);
  account_->waiting_bytes -= std::exchange(waiting_bytes_, 0);
}

absl::StatusOr<TrafficShare> CallerTraffic::Begin(const CallerQuotaPtr& quota,
                                                  uint64_t request_bytes) {
  TrafficShare share;
  bool all_open;
  int64_t answered;
  {
    MutexLock lock(mutex_);
    DropIdle();
    std::shared_ptr<Account>& account = accounts_[quota->caller];
    if (account == nullptr) account = std::make_shared<Account>(quota->caller);
    MutexLock account_lock(account->mutex);
    account->SetRate(quota->bytes_per_second);
    all_open = account->open >= quota->streams;
    answered = account->answered;
    // Without a bound `streams` is the largest number.
    if (!all_open && answered - kMoreAnswers < quota->streams) {
      ++account->open;
      share.traffic_ = this;
      share.account_ = account;
      share.bounded_ = quota->bytes_per_second != kNoBound;
      return share;
    }
    if (quota->bytes_per_second != kNoBound) account->Charge(request_bytes);
  }
  on_reached_("streams");
  if (!all_open) {
    return BoundError({.bound = "streams", .caller = quota->caller, .retry_after = kRetrySoon},
                      absl::StrCat("streams: ", CallerHas(quota->caller), " ", answered,
                                   " answers that it has not read; allowed: ", quota->streams,
                                   " and ", kMoreAnswers, " more (--quotas-file): read them"));
  }
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
  for (auto it = accounts_.begin(); it != accounts_.end();) {
    Account& account = *it->second;
    account.mutex.Lock();
    const bool idle = account.open == 0 && account.answered == 0 && account.Full();
    account.mutex.Unlock();
    it = idle ? accounts_.erase(it) : std::next(it);
  }
  drop_at_ = std::max<size_t>(64, 2 * accounts_.size());
}

}  // namespace gemmd
