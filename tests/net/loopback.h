// Connections to a port of this machine, byte by byte.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/net/listen_socket.h"

namespace gemmd {

// None where nothing accepts there.
UniqueFd ConnectTo(int port);
UniqueFd ConnectTo(const std::string& host_and_port);

// False where the other side has closed.
bool SendAll(const UniqueFd& connection, absl::string_view bytes);
// What comes until the other side closes, or until `timeout` passes without a byte.
std::string ReceiveAll(const UniqueFd& connection, absl::Duration timeout = absl::Seconds(30));
// Whether the other side closes within `timeout`.
bool ClosedByPeer(const UniqueFd& connection, absl::Duration timeout = absl::Seconds(30));

// The whole answer to GET; "" where there is none.
std::string HttpGet(const std::string& host_and_port, const std::string& path);

}  // namespace gemmd
