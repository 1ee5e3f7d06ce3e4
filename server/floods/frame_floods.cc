#include "server/floods/frame_floods.h"

#include <algorithm>
#include <utility>

#include "server/base/clock.h"

namespace gemmd {
namespace {

// Frames around messages, with TLS.
constexpr int64_t kPartAroundMessages = 8;
// A client that reads may send so much of it in WINDOW_UPDATE frames.
constexpr int64_t kPartOfSent = 4;
// A look takes at most one part in so many of the time.
constexpr int kFloodLookShare = 20;

}  // namespace

std::shared_ptr<std::atomic<int64_t>> FrameFloods::CallBegins(const std::string& peer) {
  MutexLock lock(mutex_);
  Account& its = accounts_[peer];
  if (its.wanted == nullptr) {
    its.wanted = std::make_shared<std::atomic<int64_t>>(0);
    its.look = std::max(its.look, looks_);
  }
  return its.wanted;
}

void FrameFloods::Account::Add(const GivenSockets::Traffic& now, absl::Duration passed) {
  const int64_t messages = read_now - read;
  excess += now.received - received;
  excess -= messages + messages / kPartAroundMessages + (now.sent - sent) / kPartOfSent;
  const int64_t rate = wanted == nullptr ? kRateOfStrangers : kRateOfKnown;
  excess -= static_cast<int64_t>(absl::ToDoubleSeconds(passed) * static_cast<double>(rate));
  excess = std::max<int64_t>(excess, 0);
  if (excess == 0) begun = calls;
  received = now.received;
  sent = now.sent;
  read = read_now;
}

bool FrameFloods::Floods(const std::string& peer, Account& account) {
  const bool known = account.wanted != nullptr;
  int64_t most = known ? kMostOfKnown : kMostOfStrangers;
  const std::optional<TransportCalls> calls = gates_.calls(peer);
  if (!calls.has_value()) return false;
  account.calls = calls->begun;
  // The first call of a connection is not known before its request is there.
  if (known || (calls->unfinished > 0 && gates_.first_call_waits())) {
    most += std::max(calls->begun - account.begun, calls->unfinished) * message_bytes_;
  }
  return account.excess > most;
}

void FrameFloods::Look() {
  const absl::Time began = SteadyNow();
  if (began < next_look_) return;
  const absl::Duration passed = std::min(began - last_look_, absl::Seconds(10));
  last_look_ = began;
  {
    // Before the bytes are read: what is read by then has come by then.
    MutexLock lock(mutex_);
    ++looks_;
    for (auto& [peer, its] : accounts_) {
      if (its.wanted != nullptr) its.read_now = its.wanted->load(std::memory_order_relaxed);
    }
  }
  const std::vector<GivenSockets::Traffic> traffic = gates_.traffic();
  std::vector<std::pair<std::string, Account>> suspects;
  {
    MutexLock lock(mutex_);
    for (const GivenSockets::Traffic& now : traffic) {
      Account& its = accounts_[now.peer];
      if (now.received < its.received) its = Account();  // of another connection
      its.look = looks_;
      its.Add(now, passed);
      if (its.excess > kMostOfStrangers && !its.closed) suspects.emplace_back(now.peer, its);
    }
    // A call may have begun on a connection that no look has seen yet.
    const uint64_t forgotten = looks_ - 1;
    std::erase_if(accounts_,
                  [forgotten](const auto& entry) { return entry.second.look < forgotten; });
  }
  FrameFlood flood;
  for (auto& [peer, account] : suspects) {
    if (!Floods(peer, account)) continue;
    account.closed = true;
    gates_.close(peer);
    if (++flood.closed > 1) continue;
    flood.peer = peer;
    flood.bytes = account.excess;
  }
  if (flood.closed > 0) gates_.on_flood(flood);
  {
    MutexLock lock(mutex_);
    for (auto& [peer, account] : suspects) {
      const auto found = accounts_.find(peer);
      if (found == accounts_.end()) continue;
      found->second.calls = account.calls;
      found->second.closed = account.closed;
    }
  }
  const absl::Time ended = SteadyNow();
  next_look_ = ended + kFloodLookShare * (ended - began);
}

size_t FrameFloods::connections() const {
  MutexLock lock(mutex_);
  return accounts_.size();
}

}  // namespace gemmd
