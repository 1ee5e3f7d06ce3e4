#include "server/telemetry/listen_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gemmd {
namespace {

constexpr int kBacklog = 16;

struct HostPort {
  std::string host;
  int port = 0;
};

absl::StatusOr<HostPort> ParseAddress(absl::string_view flag, absl::string_view address) {
  const size_t colon = address.rfind(':');
  HostPort parsed;
  const absl::string_view host =
      colon == absl::string_view::npos ? absl::string_view() : address.substr(0, colon);
  const bool bracketed = !host.empty() && host.front() == '[' && host.back() == ']';
  const bool host_is_one = bracketed || host.find_first_of(":[] ,") == absl::string_view::npos;
  if (host.empty() || !host_is_one || !absl::SimpleAtoi(address.substr(colon + 1), &parsed.port) ||
      parsed.port < 0 || parsed.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, "=", address, ": want host:port with a port from 0 to 65535, such as ",
                     "127.0.0.1:9464 or [::1]:9464"));
  }
  parsed.host = std::string(host);
  return parsed;
}

struct AddressListDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressListDeleter>;

// What the host's name stands for; `error` where that is nothing.
AddressList Resolve(const HostPort& address, std::string& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string host(absl::StripSuffix(absl::StripPrefix(address.host, "["), "]"));
  const int code = getaddrinfo(host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (code != 0) error = gai_strerror(code);
  return AddressList(code == 0 ? found : nullptr);
}

// None, with errno, where that fails.
UniqueFd ListenOn(const addrinfo& at) {
  UniqueFd fd(socket(at.ai_family, at.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at.ai_protocol));
  if (!fd) return fd;
  // A port whose last connections are still timing out can be taken again.
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd.get(), at.ai_addr, at.ai_addrlen) != 0 || listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    fd = UniqueFd();
    errno = error;
  }
  return fd;
}

int PortOf(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<ListenSocket> Listen(absl::string_view flag, absl::string_view address) {
  auto parsed = ParseAddress(flag, address);
  if (!parsed.ok()) return parsed.status();
  std::string error;
  const AddressList list = Resolve(*parsed, error);
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    if (UniqueFd fd = ListenOn(*at)) {
      const int port = PortOf(fd.get());
      return ListenSocket{std::move(fd), std::move(parsed->host), port};
    }
    error = std::strerror(errno);
  }
  return absl::UnavailableError(absl::StrCat(flag, "=", address, ": cannot listen: ", error));
}

}  // namespace gemmd
