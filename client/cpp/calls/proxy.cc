#include "client/cpp/calls/proxy.h"

#include <arpa/inet.h>

#include <array>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cpp/calls/address.h"

namespace gemmd::client {
namespace {

struct Found {
  const char* name;
  std::string value;
};

std::optional<Found> FirstSet(std::initializer_list<const char*> names,
                              const Variables& variables) {
  for (const char* name : names) {
    if (std::optional<std::string> value = variables(name)) return Found{name, *std::move(value)};
  }
  return std::nullopt;
}

bool InSubnet(const std::string& host, absl::string_view entry) {
  const size_t slash = entry.find('/');
  size_t bits = 0;
  if (slash == absl::string_view::npos || !absl::SimpleAtoi(entry.substr(slash + 1), &bits)) {
    return false;
  }
  const std::string subnet(entry.substr(0, slash));
  for (const auto& [family, most] : {std::pair(AF_INET, 32), std::pair(AF_INET6, 128)}) {
    std::array<uint8_t, 16> one{}, other{};
    if (inet_pton(family, host.c_str(), one.data()) != 1 ||
        inet_pton(family, subnet.c_str(), other.data()) != 1) {
      continue;
    }
    if (bits > static_cast<size_t>(most)) return false;
    for (size_t bit = 0; bit < bits; ++bit) {
      if (((one[bit / 8] ^ other[bit / 8]) >> (7 - bit % 8)) & 1) return false;
    }
    return true;
  }
  return false;
}

bool IsExcepted(const std::string& host, absl::string_view list) {
  for (absl::string_view entry : absl::StrSplit(list, ',')) {
    entry = absl::StripAsciiWhitespace(entry);
    if (entry.empty()) continue;
    if (entry == "*" || absl::EndsWithIgnoreCase(host, entry) || InSubnet(host, entry)) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> VariableOfProcess(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

std::optional<Proxy> ProxyFor(absl::string_view address, const Variables& variables) {
  const std::string host = HostOf(address);
  const std::optional<Found> proxy =
      FirstSet({"grpc_proxy", "https_proxy", "http_proxy"}, variables);
  if (host.empty() || !proxy) return std::nullopt;
  absl::string_view authority = proxy->value;
  if (!absl::ConsumePrefix(&authority, "http://")) return std::nullopt;
  authority = authority.substr(0, authority.find('/'));
  authority.remove_prefix(authority.rfind('@') + 1);  // the user and the password
  if (authority.empty()) return std::nullopt;
  const std::optional<Found> excepted =
      FirstSet({"no_grpc_proxy", "no_proxy", "NO_PROXY"}, variables);
  if (excepted && IsExcepted(host, excepted->value)) return std::nullopt;
  return Proxy{.address = std::string(authority), .variable = proxy->name};
}

}  // namespace gemmd::client
