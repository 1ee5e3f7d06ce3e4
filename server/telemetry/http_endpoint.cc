#include "server/telemetry/http_endpoint.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/telemetry/http_answer.h"

namespace gemmd {
namespace {

// From accepting a connection to its last byte.
constexpr absl::Duration kConnectionTime = absl::Seconds(2);
// Before accepting again after that failed, such as for want of descriptors.
constexpr absl::Duration kRetryPause = absl::Milliseconds(100);

// Waits until `fd` is ready for `events`. False once `stop` is readable, and at
// the deadline.
bool WaitFor(int fd, short events, int stop, absl::Time deadline) {
  std::array<pollfd, 2> fds{pollfd{fd, events, 0}, pollfd{stop, POLLIN, 0}};
  for (;;) {
    int timeout_ms = -1;
    if (deadline != absl::InfiniteFuture()) {
      timeout_ms = static_cast<int>(absl::ToInt64Milliseconds(deadline - absl::Now()));
      if (timeout_ms <= 0) return false;
    }
    const int ready = poll(fds.data(), fds.size(), timeout_ms);
    if (ready < 0 && errno != EINTR) return false;
    if (ready > 0) return fds[1].revents == 0;
  }
}

// The head of a request; empty where none came whole.
std::string ReadRequest(int fd, int stop, absl::Time deadline) {
  std::string request;
  std::array<char, 1024> buffer;
  while (request.size() < kMaxRequestBytes && WaitFor(fd, POLLIN, stop, deadline)) {
    const ssize_t bytes = recv(fd, buffer.data(), buffer.size(), 0);
    if (bytes <= 0) break;
    request.append(buffer.data(), static_cast<size_t>(bytes));
    if (absl::StrContains(request, "\r\n\r\n")) return request;
  }
  return "";
}

void Write(int fd, absl::string_view answer, int stop, absl::Time deadline) {
  while (!answer.empty() && WaitFor(fd, POLLOUT, stop, deadline)) {
    const ssize_t bytes = send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    if (bytes <= 0) return;
    answer.remove_prefix(static_cast<size_t>(bytes));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Start(absl::string_view flag,
                                                                  absl::string_view address,
                                                                  const Metrics& metrics) {
  auto socket = Listen(flag, address);
  if (!socket.ok()) return socket.status();
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop) {
    return absl::UnavailableError(
        absl::StrCat(flag, "=", address, ": cannot make an eventfd: ", std::strerror(errno)));
  }
  return std::unique_ptr<HttpEndpoint>(
      new HttpEndpoint(*std::move(socket), std::move(stop), metrics));
}

HttpEndpoint::HttpEndpoint(ListenSocket socket, UniqueFd stop, const Metrics& metrics)
    : socket_(std::move(socket)),
      stop_(std::move(stop)),
      metrics_(metrics),
      thread_([this] { Serve(); }) {}

HttpEndpoint::~HttpEndpoint() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

std::string HttpEndpoint::address() const { return absl::StrCat(socket_.host, ":", port()); }

void HttpEndpoint::Serve() {
  while (WaitFor(socket_.fd.get(), POLLIN, stop_.get(), absl::InfiniteFuture())) {
    const UniqueFd connection(
        accept4(socket_.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection) {
      ServeConnection(connection.get());
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      absl::SleepFor(kRetryPause);
    }
  }
}

void HttpEndpoint::ServeConnection(int fd) {
  const absl::Time deadline = absl::Now() + kConnectionTime;
  const std::string request = ReadRequest(fd, stop_.get(), deadline);
  if (request.empty()) return;
  Write(fd, AnswerRequest(request, [this] { return metrics_.Scrape(); }), stop_.get(), deadline);
}

}  // namespace gemmd
