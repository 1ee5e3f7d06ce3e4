#include "server/net/listen_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gemmd {
namespace {

absl::Status CannotListen(absl::string_view flag, absl::string_view address,
                          absl::string_view why) {
  return absl::UnavailableError(absl::StrCat(flag, "=", address, ": cannot listen: ", why));
}

struct AddressListDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressListDeleter>;

// What the host's name stands for; `error` where that is nothing.
AddressList Resolve(const Address& address, std::string& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string host(absl::StripSuffix(absl::StripPrefix(address.host, "["), "]"));
  const int code = getaddrinfo(host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (code != 0) error = gai_strerror(code);
  return AddressList(code == 0 ? found : nullptr);
}

void SetPort(sockaddr_storage& address, int port) {
  const auto network_order = htons(static_cast<uint16_t>(port));
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = network_order;
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = network_order;
  }
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// None, with errno, where that fails.
UniqueFd BindAndListen(int family, const sockaddr* address, socklen_t length) {
  UniqueFd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  // A port whose last connections are still timing out can be taken again.
  const int on = 1;
  if (family != AF_UNIX) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd.get(), address, length) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    const int error = errno;
    fd = UniqueFd();
    errno = error;
  }
  return fd;
}

// A name may stand for several addresses, such as localhost for ::1 and
// 127.0.0.1. One that this machine does not have is passed over; a port that is
// taken on any of them is an error, not a part of the load that never comes.
absl::StatusOr<Listening> ListenOnTcp(absl::string_view flag, const Address& address) {
  std::string error;
  const AddressList list = Resolve(address, error);
  Listening listening{.address = address};
  const std::string text = listening.text();
  std::set<std::string> seen;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    // Resolvers may give an address twice.
    if (!seen.insert(std::string(reinterpret_cast<const char*>(at->ai_addr), at->ai_addrlen))
             .second) {
      continue;
    }
    sockaddr_storage bound{};
    std::memcpy(&bound, at->ai_addr, at->ai_addrlen);
    SetPort(bound, listening.address.port);
    UniqueFd fd =
        BindAndListen(at->ai_family, reinterpret_cast<const sockaddr*>(&bound), at->ai_addrlen);
    if (fd) {
      listening.address.port = PortOf(fd.get());
      listening.fds.push_back(std::move(fd));
      continue;
    }
    const int failure = errno;
    error = std::strerror(failure);
    // A port that is free on one address may be taken on another.
    const bool any_port = address.port == 0 && !listening.fds.empty();
    if (failure == EADDRINUSE && !any_port) return CannotListen(flag, text, error);
  }
  if (listening.fds.empty()) return CannotListen(flag, text, error);
  return listening;
}

// Whether somebody accepts connections there.
bool IsServed(const sockaddr_un& address) {
  const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
         errno == EAGAIN;
}

absl::StatusOr<Listening> ListenOnUnix(absl::string_view flag, const Address& address) {
  Listening listening{.address = address};
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path, address.path.c_str(), address.path.size() + 1);
  if (struct stat file; lstat(at.sun_path, &file) == 0) {
    if (!S_ISSOCK(file.st_mode)) {
      return CannotListen(flag, listening.text(), "a file that is no socket is there");
    }
    if (IsServed(at)) return CannotListen(flag, listening.text(), "another process serves there");
    unlink(at.sun_path);
  }
  UniqueFd fd = BindAndListen(AF_UNIX, reinterpret_cast<const sockaddr*>(&at), sizeof(at));
  if (!fd) return CannotListen(flag, listening.text(), std::strerror(errno));
  listening.fds.push_back(std::move(fd));
  listening.file = SocketFile(address.path);
  return listening;
}

}  // namespace

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
  struct stat file {};
  if (lstat(path_.c_str(), &file) != 0) path_.clear();
  device_ = file.st_dev;
  inode_ = file.st_ino;
}

SocketFile::~SocketFile() {
  struct stat file {};
  if (path_.empty() || lstat(path_.c_str(), &file) != 0) return;
  if (file.st_dev == device_ && file.st_ino == inode_) unlink(path_.c_str());
}

std::string Listening::text() const {
  if (address.is_unix()) return absl::StrCat("unix:", address.path);
  return absl::StrCat(address.host, ":", address.port);
}

absl::StatusOr<Listening> Listen(absl::string_view flag, const Address& address) {
  return address.is_unix() ? ListenOnUnix(flag, address) : ListenOnTcp(flag, address);
}

}  // namespace gemmd
