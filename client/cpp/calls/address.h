// The address of a server, as gRPC takes it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gemmd::client {

// INVALID_ARGUMENT, which says what the form must be: HOST:PORT, also behind dns:, ipv4: or ipv6:,
// with several of them behind the latter two, or unix:PATH. gRPC itself would take a port above
// 65535 for another one, and none for 443.
absl::Status CheckAddress(absl::string_view address);

// Whether nobody else can listen to what is sent there.
bool StaysOnThisMachine(absl::string_view address);

// Without the port, and without the brackets of IPv6. Of several addresses the first one's; empty
// for a socket's path.
std::string HostOf(absl::string_view address);

}  // namespace gemmd::client
