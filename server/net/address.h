// Parses addresses.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gemmd {

struct Address {
  std::string host;  // as given, an IPv6 one in its brackets
  int port = 0;      // 0: any free one
  std::string path;  // of a Unix socket, which has neither host nor port

  bool is_unix() const { return !path.empty(); }
};

// What ParseTcpAddress and ParseAddress accept, for error messages.
inline constexpr char kTcpAddressForm[] =
    "host:port with a port from 0 to 65535, such as 127.0.0.1:9464 or [::1]:9464";
inline constexpr char kAddressForm[] =
    "host:port with a port from 0 to 65535, such as 127.0.0.1:50051 or [::1]:50051, or unix:path "
    "with a path of 1 to 107 bytes; several, with commas between them";

// "host:port" or "[ipv6]:port". INVALID_ARGUMENT, with the reason, for anything else: a
// port that is not a decimal number of at most 65535, a host of digits that is not an
// IPv4 address, spaces.
absl::StatusOr<Address> ParseTcpAddress(absl::string_view text);

// The same, or "unix:path".
absl::StatusOr<Address> ParseAddress(absl::string_view text);

// One or more of these, up to kMaxAddresses, with commas between them. So the path of a
// socket has none.
inline constexpr size_t kMaxAddresses = 16;
absl::StatusOr<std::vector<Address>> ParseAddresses(absl::string_view text);

}  // namespace gemmd
