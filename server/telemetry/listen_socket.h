// A TCP port to accept connections on.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gemmd {

// A file descriptor, closed on destruction. -1 when moved from.
class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

struct ListenSocket {
  UniqueFd fd;       // does not block
  std::string host;  // as given, an IPv6 one in its brackets
  int port = 0;      // the one that is listened on
};

// Listens on `address`, "host:port" with an IPv6 host in brackets; port 0 takes
// any free one. `flag` is what the address was given by, for errors:
// INVALID_ARGUMENT for an address that is none, UNAVAILABLE with the reason for
// one that cannot be listened on.
absl::StatusOr<ListenSocket> Listen(absl::string_view flag, absl::string_view address);

}  // namespace gemmd
