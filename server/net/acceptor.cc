#include "server/net/acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/peer_name.h"
#include "server/base/thread_name.h"

namespace gemmd {
namespace {

// The pause before accepting again, after accept has failed for want of a resource.
constexpr absl::Duration kPause = absl::Milliseconds(50);
// With no room left, those that have ended are looked for this often at most: a
// flood of connections is refused, and costs no more than that.
constexpr std::chrono::milliseconds kCountPeriod{10};
// And connections are ended this often at most, to make room.
constexpr std::chrono::milliseconds kMakeRoomPeriod{50};
// Counting handshakes takes milliseconds where there are thousands of connections: it gets
// at most one part in so many of the thread's time.
constexpr int kCountShare = 20;
// Then Stop is looked for, and the other sockets.
constexpr int kAcceptedInARow = 64;

// What accept(2) says of the connection, or of nothing at all; the next one may
// be well.
bool ConcernsOneConnection(int error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPERM:  // a firewall rule
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case ENETDOWN:
    case ENETUNREACH:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

bool IsWant(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// Whether the other end of a Unix socket is a process of this one's user, or of root. True for
// other sockets, whose kernel knows no user.
bool IsOfOwnUser(int fd) {
  int domain = AF_UNSPEC;
  socklen_t size = sizeof(domain);
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0) return false;
  if (domain != AF_UNIX) return true;
  ucred peer{};
  size = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == geteuid() || peer.uid == 0);
}

}  // namespace

Acceptor::Acceptor(std::vector<int> fds, AcceptorLimits limits)
    : fds_(std::move(fds)), limits_(limits), stop_(eventfd(0, EFD_CLOEXEC)) {
  stats_.limit = limits.connections;
  stats_.handshake_limit = limits.handshakes;
}

Acceptor::~Acceptor() { Stop(); }

void Acceptor::Start(Take take, CountEstablished count_established, MayServe may_serve) {
  take_ = std::move(take);
  may_serve_ = std::move(may_serve);
  {
    MutexLock lock(mutex_);
    count_established_ = std::move(count_established);
  }
  if (!stop_) return Fail(absl::UnavailableError("there is no descriptor left for an eventfd"));
  thread_ = std::thread([this] {
    SetThreadName("accept");
    Run();
  });
}

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void Acceptor::Run() {
  std::vector<pollfd> ready;
  for (const int fd : fds_) ready.push_back({.fd = fd, .events = POLLIN});
  ready.push_back({.fd = stop_.get(), .events = POLLIN});
  while (Health().ok()) {
    if (poll(ready.data(), ready.size(), -1) < 0) {
      if (errno != EINTR && !IsWant(errno)) {
        return Fail(absl::UnavailableError(absl::StrCat("poll: ", std::strerror(errno))));
      }
      continue;
    }
    if (ready.back().revents != 0) return;
    absl::Duration pause;
    for (const pollfd& each : ready) {
      if (each.revents != 0) pause = std::max(pause, AcceptSome(each.fd));
    }
    if (pause > absl::ZeroDuration()) absl::SleepFor(pause);
  }
}

absl::Duration Acceptor::AcceptSome(int fd) {
  for (int i = 0; i < kAcceptedInARow; ++i) {
    UniqueFd connection(accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection) {
      // Closed at once where there is no room: its client hears so, and tries
      // again later, which one that waits in the backlog would not.
      if (!HasRoom()) {
        MakeRoom();
      } else if (MayBeServed(connection.get()) && HasRoomForHandshake()) {
        {
          MutexLock lock(mutex_);
          ++stats_.accepted;
          given_.Add(connection.get());
        }
        if (limits_.proof > absl::ZeroDuration()) {
          unproven_.Add(PeerName(connection.get()), connection.get(),
                        UnprovenConnections::Clock::now());
        }
        take_(std::move(connection));
      }
      continue;
    }
    const int error = errno;
    if (error == EAGAIN) return absl::ZeroDuration();
    if (!ConcernsOneConnection(error) && !IsWant(error)) {
      Fail(absl::UnavailableError(absl::StrCat("accept: ", std::strerror(error))));
      return absl::ZeroDuration();
    }
    if (error == EINTR) continue;
    MutexLock lock(mutex_);
    ++stats_.failures;
    if (IsWant(error)) return kPause;
  }
  return absl::ZeroDuration();
}

bool Acceptor::HasRoom() {
  MutexLock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  const auto limit = static_cast<size_t>(stats_.limit);
  if (given_.size() >= limit && now - counted_ >= kCountPeriod) {
    given_.CountOpen();
    counted_ = now;
  }
  const bool room = given_.size() < limit;
  if (!room) ++stats_.refused;
  return room;
}

void Acceptor::MakeRoom() {
  if (limits_.proof <= absl::ZeroDuration()) return;
  const auto now = UnprovenConnections::Clock::now();
  if (now - made_room_ < kMakeRoomPeriod) return;
  made_room_ = now;
  const size_t ended = unproven_.EndOldest(now - absl::ToChronoNanoseconds(limits_.proof));
  MutexLock lock(mutex_);
  stats_.made_room += static_cast<int64_t>(ended);
}

bool Acceptor::HasRoomForHandshake() {
  if (limits_.handshakes == 0) return true;
  const auto now = std::chrono::steady_clock::now();
  if (handshakes_ >= limits_.handshakes && now >= count_handshakes_at_) {
    handshakes_ = Stats().handshaking;
    const auto end = std::chrono::steady_clock::now();
    count_handshakes_at_ = end + std::max<std::chrono::steady_clock::duration>(
                                     kCountPeriod, kCountShare * (end - now));
  }
  if (handshakes_ < limits_.handshakes) {
    ++handshakes_;
    return true;
  }
  MutexLock lock(mutex_);
  ++stats_.refused_handshakes;
  return false;
}

bool Acceptor::MayBeServed(int fd) {
  if (limits_.own_user && !IsOfOwnUser(fd)) {
    MutexLock lock(mutex_);
    ++stats_.refused_users;
    return false;
  }
  if (may_serve_ == nullptr || may_serve_(PeerName(fd))) return true;
  MutexLock lock(mutex_);
  ++stats_.refused_peers;
  return false;
}

bool Acceptor::ShutDown(const std::string& peer) {
  MutexLock lock(mutex_);
  return given_.ShutDown(peer);
}

std::vector<GivenSockets::Unread> Acceptor::UnreadAbove(int64_t bytes) const {
  MutexLock lock(mutex_);
  return given_.UnreadAbove(bytes);
}

std::vector<GivenSockets::Traffic> Acceptor::Traffic() const {
  MutexLock lock(mutex_);
  return given_.TrafficOfAll();
}

void Acceptor::ShutDownConnections() {
  MutexLock lock(mutex_);
  given_.ShutDownAll();
}

void Acceptor::Fail(absl::Status status) {
  MutexLock lock(mutex_);
  if (health_.ok()) health_ = std::move(status);
}

absl::Status Acceptor::Health() const {
  MutexLock lock(mutex_);
  return health_;
}

int64_t Acceptor::Refused() const {
  MutexLock lock(mutex_);
  return stats_.refused + stats_.refused_handshakes;
}

ConnectionStats Acceptor::Stats() const {
  CountEstablished count_established;
  {
    MutexLock lock(mutex_);
    count_established = count_established_;
  }
  // First: a connection that ends its handshake in between counts as in it.
  const int64_t established = count_established == nullptr ? -1 : count_established();
  MutexLock lock(mutex_);
  ConnectionStats stats = stats_;
  stats.open = static_cast<int64_t>(given_.CountOpen());
  if (established >= 0) stats.handshaking = std::max<int64_t>(stats.open - established, 0);
  if (limits_.age > absl::ZeroDuration()) {
    const auto now = GivenSockets::Clock::now();
    stats.leaving =
        static_cast<int64_t>(given_.AddedBefore(now - absl::ToChronoNanoseconds(limits_.age)));
  }
  return stats;
}

}  // namespace gemmd
