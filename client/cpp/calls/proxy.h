// The proxy that a connection with TLS goes through.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace gemmd::client {

struct Proxy {
  std::string address;  // host:port, without its password
  std::string variable;
};

// The value of a variable; nullopt where it is not set.
using Variables = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> VariableOfProcess(const char* name);

// That of grpc_proxy, https_proxy or http_proxy, the first that is set, as gRPC takes it: it must
// be http://HOST:PORT. nullopt also for a server that is excepted by no_grpc_proxy, no_proxy or
// NO_PROXY, the first that is set: a list of host names, which stand for their subdomains as well,
// of subnets such as 10.0.0.0/8, or "*" for every server. gRPC itself knows no NO_PROXY, no "*"
// and, before version 1.61, no subnets.
std::optional<Proxy> ProxyFor(absl::string_view address, const Variables& variables);

}  // namespace gemmd::client
