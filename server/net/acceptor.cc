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
#include "server/base/thread_name.h"

namespace gemmd {
namespace {

// Before accepting again after that failed for want of something.
constexpr absl::Duration kPause = absl::Milliseconds(50);
// With no room left, those that have ended are looked for this often at most: a
// flood of connections is refused, and costs no more than that.
constexpr std::chrono::milliseconds kCountPeriod{10};
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

}  // namespace

Acceptor::Acceptor(std::vector<int> fds, int max_connections)
    : fds_(std::move(fds)), stop_(eventfd(0, EFD_CLOEXEC)) {
  stats_.limit = max_connections;
}

Acceptor::~Acceptor() { Stop(); }

void Acceptor::Start(Take take) {
  take_ = std::move(take);
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
      if (HasRoom()) {
        {
          MutexLock lock(mutex_);
          given_.Add(connection.get());
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
  ++(room ? stats_.accepted : stats_.refused);
  return room;
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
  return stats_.refused;
}

ConnectionStats Acceptor::Stats() const {
  MutexLock lock(mutex_);
  ConnectionStats stats = stats_;
  stats.open = static_cast<int64_t>(given_.CountOpen());
  return stats;
}

}  // namespace gemmd
