// The open calls of each caller, and its rate of bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/base/timer.h"
#include "server/engine/bounds/caller_quota.h"

namespace gemmd {

class CallerTraffic;

// One call of a caller. Open until it is answered, and then an answer until this is destroyed: when
// gRPC is done with the call, as its client has read the answer. Guarded by the call's own lock.
// Empty when moved from.
class TrafficShare {
 public:
  TrafficShare() = default;
  TrafficShare(TrafficShare&& other) noexcept { *this = std::move(other); }
  TrafficShare& operator=(TrafficShare&& other) noexcept;
  ~TrafficShare() { Reset(); }
  void Reset();
  // The call's end is about to be handed to gRPC. Call this before, so that a client that knows its
  // call's end may begin another one.
  void Answered();

  // From now on this quota of the caller holds: for this call, and, where it has a rate, for
  // what the caller has yet to make up for. A quota of another caller changes nothing.
  void Use(const CallerQuotaPtr& quota);
  // The call has received or sent so many bytes.
  void Charge(uint64_t bytes);
  // When the caller has made up for what it has moved, with all of its calls: in the past
  // where it may go on now.
  absl::Time ready_at() const;
  // The bytes a second that the caller may move; 0 where there is no bound.
  uint64_t rate() const;
  // Whether the call may wait for that with a request of so many bytes, which it holds
  // meanwhile: those of all calls that wait come to no more than the caller may move in a
  // second. They count until StopWaiting.
  bool MayWait(uint64_t bytes);
  void StopWaiting();

 private:
  friend class CallerTraffic;
  struct Account;
  CallerTraffic* traffic_ = nullptr;
  std::shared_ptr<Account> account_;
  bool bounded_ = false;  // the call's quota has a rate
  bool answered_ = false;
  uint64_t waiting_bytes_ = 0;
};

// A caller may move its bytes a second on average, and what it did not use of the last second on
// top. A caller that has moved more waits: until it has made up for that, its calls begin no work
// and are not read. Answers are never held back, because they hold memory that others need. They
// count, so the caller's next request waits. Thread-safe. Must outlive its shares.
class CallerTraffic {
 public:
  // `on_reached` is called when a call is refused, or has to wait: with the bound's name, from
  // any thread. It must be quick.
  explicit CallerTraffic(std::function<void(absl::string_view bound)> on_reached)
      : on_reached_(std::move(on_reached)) {}

  // A caller may have as many answers that its clients have yet to read as it may have calls open,
  // and so many more: a client that has read one may call again before gRPC's thread tells of it.
  static constexpr int64_t kMoreAnswers = 8;

  // RESOURCE_EXHAUSTED where the caller has as many calls open, or answers unread, as it may. The
  // call's `request_bytes`, which have come already, then count all the same.
  absl::StatusOr<TrafficShare> Begin(const CallerQuotaPtr& quota, uint64_t request_bytes = 0);

  // A call has to wait because of its caller's rate.
  void OnReachedRate() { on_reached_("bytes-per-second"); }

  // For what waits.
  Timer& timer() { return timer_; }
  // The callers that are remembered: those with calls, and those that have yet to make up for
  // theirs.
  size_t callers() const;

 private:
  friend class TrafficShare;
  using Account = TrafficShare::Account;

  void DropIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<void(absl::string_view)> on_reached_;
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Account>, std::less<>> accounts_ ABSL_GUARDED_BY(mutex_);
  size_t drop_at_ ABSL_GUARDED_BY(mutex_) = 64;  // entries, from which idle ones are looked for
  Timer timer_;
};

}  // namespace gemmd
