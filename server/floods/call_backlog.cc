#include "server/floods/call_backlog.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/base/clock.h"
#include "server/base/thread_name.h"

namespace gemmd {
namespace {

// Calls that begin before the next look.
constexpr int64_t kCallsBetweenLooks = 256;
// Connections of one address that are accepted before the next look.
constexpr int kConnectionsBetweenLooks = 4;
constexpr absl::Duration kLeastPeriod = absl::Milliseconds(10);
// A look takes at most one part in so many of the time.
constexpr int kLookShare = 5;
// Connections without calls that one look reads, one after the other.
constexpr int kQuietAtOnce = 64;
// What gRPC has yet to read of a connection whose first call has not come, or that its client has
// closed, counts as the calls that it may be: one for each of so many bytes, beyond a TLS handshake
// or a preface, and no more than that. It may be payload, and of an open connection it more often
// is. At most this part of the bound for each connection, since it is a guess: a few clients that
// end in mid-upload are no flood.
constexpr int64_t kBytesOfCall = 32;
constexpr int64_t kBytesBeforeCalls = 1024;
constexpr int64_t kPartUnread = 16;
constexpr int64_t kPartUnreadOfClosed = 8;
// However many share what all may have.
constexpr int64_t kLeastBound = 256;
// A flood comes again as soon as it may.
constexpr absl::Duration kRefuseFor = absl::Seconds(2);
// A known caller that opens too many calls is refused; one that goes on, as by resetting them, is
// closed at so many more, in parts of the bound.
constexpr int64_t kPartAboveBound = 4;

}  // namespace

std::string CallBacklog::AddressOf(absl::string_view peer) {
  if (absl::ConsumePrefix(&peer, "ipv4:")) return std::string(peer.substr(0, peer.rfind(':')));
  if (!absl::ConsumePrefix(&peer, "ipv6:%5B")) return "";
  const std::string host(peer.substr(0, peer.find_first_of("%]")));
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return host;
  std::fill(v6.s6_addr + 8, v6.s6_addr + 16, 0);
  std::array<char, INET6_ADDRSTRLEN> text;
  inet_ntop(AF_INET6, &v6, text.data(), text.size());
  return absl::StrCat(text.data(), "/64");
}

void CallBacklog::Start() {
  thread_ = std::thread([this] {
    SetThreadName("backlog");
    Loop();
  });
}

void CallBacklog::Stop() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyAll();
  thread_.join();
}

void CallBacklog::Began() {
  const int64_t now = unfinished_.fetch_add(1) + 1;
  if (now - looked_at_.load() < kCallsBetweenLooks || !asleep_.exchange(false)) return;
  MutexLock lock(mutex_);
  wake_.NotifyAll();
}

void CallBacklog::Know(const std::string& peer, const std::string& caller) {
  if (caller.empty()) return;
  MutexLock lock(mutex_);
  callers_.emplace(peer, caller);
}

absl::Status CallBacklog::MayBegin(absl::string_view caller) const {
  if (!any_full_) return absl::OkStatus();
  MutexLock lock(mutex_);
  const auto found = full_.find(std::string(caller));
  if (found == full_.end()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "max-calls-per-caller: caller \"", caller, "\" has ", found->second, " of at most ", most_,
      " calls that are not over, reset ones included: try again when some are"));
}

bool CallBacklog::MayServe(const std::string& peer) {
  const std::string address = AddressOf(peer);
  bool look;
  {
    MutexLock lock(mutex_);
    if (refused_.count(address) != 0) return false;
    look = ++fresh_[address] > kConnectionsBetweenLooks;
    if (!look) wake_.NotifyAll();
  }
  if (!look) return true;
  Look();
  MutexLock lock(mutex_);
  ++fresh_[address];
  return refused_.count(address) == 0;
}

void CallBacklog::Refuse(const std::string& peer, absl::Duration time) {
  MutexLock lock(mutex_);
  absl::Time& until = refused_.try_emplace(AddressOf(peer), absl::InfinitePast()).first->second;
  until = std::max(until, SteadyNow() + time);
  wake_.NotifyAll();  // until it is served again
}

std::optional<TransportCalls> CallBacklog::CallsOf(const std::string& peer) {
  MutexLock looking(looking_);
  ReadOpened();
  // The latest: the peer of a closed one may come again.
  for (auto it = connections_.rbegin(); it != connections_.rend(); ++it) {
    if (it->second.peer == peer) return gates_.calls(it->first);
  }
  return std::nullopt;
}

int64_t CallBacklog::calls() const {
  MutexLock lock(mutex_);
  return calls_;
}

bool CallBacklog::Due() const {
  return busy_ || !fresh_.empty() || !refused_.empty() ||
         unfinished_.load() - looked_at_.load() >= kCallsBetweenLooks;
}

void CallBacklog::Loop() {
  for (absl::Time next = SteadyNow();;) {
    {
      MutexLock lock(mutex_);
      while (!stop_ && SteadyNow() < next) wake_.WaitUntil(mutex_, next);
      asleep_ = true;  // before Due is asked: a call that begins later wakes this
      while (!stop_ && !Due()) {
        wake_.Wait(mutex_);
        asleep_ = true;
      }
      asleep_ = false;
      if (stop_) return;
    }
    const absl::Time began = SteadyNow();
    Look();
    const absl::Time ended = SteadyNow();
    next = ended + std::max(kLeastPeriod, (kLookShare - 1) * (ended - began));
  }
}

void CallBacklog::Look() {
  Excess excess;
  {
    MutexLock looking(looking_);
    looked_at_ = unfinished_.load();
    {
      MutexLock lock(mutex_);
      fresh_.clear();
    }
    Read();
    std::unordered_map<std::string, GivenSockets::Unread> unread;
    for (GivenSockets::Unread& one : gates_.unread(kBytesBeforeCalls)) {
      unread.emplace(one.peer, std::move(one));
    }
    MutexLock lock(mutex_);
    excess = Judge(Sum(std::move(unread)), SteadyNow());
    any_full_ = !full_.empty();
    // A look from elsewhere may have refused an address: the thread looks until it is served again.
    wake_.NotifyAll();
  }
  for (auto& [address, of] : excess) {
    auto& [told, peers] = of;
    for (const std::string& peer : peers) told.closed += gates_.close(peer) ? 1 : 0;
    if (told.closed > 0 || told.bound > 0) gates_.on_excess(told);
  }
}

void CallBacklog::ReadOpened() {
  for (Transport& transport : gates_.opened(last_)) {
    last_ = transport.id;
    std::string address = AddressOf(transport.peer);
    connections_[transport.id] = {
        .peer = std::move(transport.peer), .address = std::move(address), .calls = 1};
  }
}

void CallBacklog::Read() {
  ReadOpened();
  int quiet = 0;
  intptr_t quiet_until = next_quiet_;
  for (auto it = connections_.begin(); it != connections_.end();) {
    Connection& its = it->second;
    if (its.calls == 0) {
      if (it->first < next_quiet_ || quiet == kQuietAtOnce) {
        ++it;
        continue;
      }
      ++quiet;
      quiet_until = it->first + 1;
    }
    const std::optional<TransportCalls> calls = gates_.calls(it->first);
    if (calls.has_value()) {
      its.calls = calls->unfinished;
      its.begun = calls->begun > 0;
    }
    it = calls.has_value() ? std::next(it) : connections_.erase(it);
  }
  next_quiet_ = quiet == kQuietAtOnce ? quiet_until : 0;
}

CallBacklog::Owners CallBacklog::Sum(std::unordered_map<std::string, GivenSockets::Unread> unread) {
  const auto calls_in = [this](const GivenSockets::Unread& one) {
    return std::min((one.bytes - kBytesBeforeCalls) / kBytesOfCall,
                    most_ / (one.left ? kPartUnreadOfClosed : kPartUnread));
  };
  Owners owners;
  std::unordered_map<std::string, std::string> callers;
  for (auto& [id, connection] : connections_) {
    const auto caller = callers_.find(connection.peer);
    const bool known = caller != callers_.end();
    if (known) callers.insert(*caller);
    int64_t calls = connection.calls;
    if (const auto found = unread.find(connection.peer); found != unread.end()) {
      if (found->second.left || !connection.begun) calls += calls_in(found->second);
      unread.erase(found);
    }
    if (calls == 0) continue;
    Owner& owner = owners[{known, known ? caller->second : connection.address}];
    owner.calls += calls;
    owner.connections.push_back(&connection);
  }
  // Those that gRPC has not begun with.
  for (const auto& [peer, one] : unread) owners[{false, AddressOf(peer)}].calls += calls_in(one);
  // A connection may be known before it is read.
  if (callers_.size() > 2 * callers.size() + 1024) callers_ = std::move(callers);
  return owners;
}

int64_t CallBacklog::BoundOf(const Owners& owners) const {
  std::vector<int64_t> calls;
  for (const auto& [whose, owner] : owners) calls.push_back(owner.calls);
  std::sort(calls.begin(), calls.end());
  int64_t left = kCallersWorthOfCalls * most_;
  for (size_t i = 0; i < calls.size(); ++i) {
    const int64_t share = left / static_cast<int64_t>(calls.size() - i);
    if (calls[i] > share) return std::min(most_, share);
    left -= calls[i];
  }
  return most_;
}

std::vector<std::string>& CallBacklog::RefuseExcess(const std::string& address, TooManyCalls about,
                                                    absl::Time now, Excess& excess) {
  const auto [refused, fresh] = refused_.try_emplace(address, now);
  const bool told = !fresh;
  refused->second = std::max(refused->second, now + kRefuseFor);
  auto& [to_tell, peers] = excess[address];
  if (!told) {
    about.address = address;
    to_tell = std::move(about);
  }
  return peers;
}

CallBacklog::Excess CallBacklog::Judge(const Owners& owners, absl::Time now) {
  const int64_t bound = std::max(BoundOf(owners), kLeastBound);
  Excess excess;
  full_.clear();
  calls_ = 0;
  busy_ = false;
  for (const auto& [whose, owner] : owners) {
    const auto& [is_caller, name] = whose;
    calls_ += owner.calls;
    busy_ |= owner.calls > bound / 4;
    if (is_caller && owner.calls >= bound) full_[name] = owner.calls;
    if (owner.calls <= (is_caller ? bound + bound / kPartAboveBound : bound)) continue;
    const TooManyCalls about = {
        .caller = is_caller ? name : "", .calls = owner.calls, .bound = bound};
    if (!is_caller) RefuseExcess(name, about, now, excess);
    std::vector<Connection*> largest = owner.connections;
    std::sort(largest.begin(), largest.end(),
              [](const Connection* a, const Connection* b) { return a->calls > b->calls; });
    int64_t left = owner.calls;
    for (Connection* connection : largest) {
      if (left <= bound / 2) break;
      left -= connection->calls;
      std::vector<std::string>& peers = RefuseExcess(connection->address, about, now, excess);
      if (!std::exchange(connection->closed, true)) peers.push_back(connection->peer);
    }
  }
  for (auto it = refused_.begin(); it != refused_.end();) {
    it = now >= it->second ? refused_.erase(it) : std::next(it);
  }
  return excess;
}

}  // namespace gemmd
