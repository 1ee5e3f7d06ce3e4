// Opens listening sockets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/base/unique_fd.h"
#include "server/net/address.h"

namespace gemmd {

// The file of a Unix socket. Removed on destruction, unless another file has replaced it.
class SocketFile {
 public:
  SocketFile() = default;
  explicit SocketFile(std::string path);
  SocketFile(SocketFile&& other) noexcept { *this = std::move(other); }
  SocketFile& operator=(SocketFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
    return *this;
  }
  ~SocketFile();

 private:
  std::string path_;
  unsigned long device_ = 0;
  unsigned long inode_ = 0;
};

// The listening sockets of one address: one for each IP address of its host, all with
// the same port.
struct Listening {
  Address address;            // with the port that is listened on
  std::vector<UniqueFd> fds;  // do not block; at least one
  SocketFile file;

  // As ParseAddress takes it: "127.0.0.1:50051", "unix:/run/gemmd.sock".
  std::string text() const;
};

// UNAVAILABLE, with the reason, where it cannot listen on the address. `flag` is the
// flag of the address, for error messages. The file of a Unix socket on which nobody
// listens any more is replaced.
absl::StatusOr<Listening> Listen(absl::string_view flag, const Address& address);

}  // namespace gemmd
