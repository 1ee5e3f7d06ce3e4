// The address of a server, as gRPC takes it, and the proxy on the way there.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gemmd::client {

// INVALID_ARGUMENT with the allowed form, unless it is HOST:PORT or unix:PATH. HOST:PORT may stand
// behind dns:, ipv4: or ipv6:, and several of them behind the latter two. gRPC itself would take a
// port above 65535 for another one, and a missing one for 443.
absl::Status CheckAddress(absl::string_view address);

// Whether nobody else can listen to what is sent there.
bool StaysOnThisMachine(absl::string_view address);

// The host of the address, or of the first of several: without the port, and without the brackets
// of IPv6. Empty for a socket's path.
std::string HostOf(absl::string_view address);

struct Proxy {
  std::string address;  // host:port, without its password
  std::string variable;
};

// The value of a variable; nullopt where it is not set.
using Variables = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> VariableOfProcess(const char* name);

// The proxy of the first variable that is set of grpc_proxy, https_proxy and http_proxy. As for
// gRPC, it must be http://HOST:PORT. nullopt also for a server that the first one set of
// no_grpc_proxy, no_proxy and NO_PROXY excepts. That is a list of host names, which also stand for
// their subdomains, of subnets such as 10.0.0.0/8, or "*" for every server. gRPC itself knows no
// NO_PROXY, no "*" and, before version 1.61, no subnets.
std::optional<Proxy> ProxyFor(absl::string_view address, const Variables& variables);

}  // namespace gemmd::client
