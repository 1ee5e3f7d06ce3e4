#include "client/cpp/calls/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gemmd::client {
namespace {

constexpr int kMostPort = 65535;

bool IsUnix(absl::string_view address) {
  return absl::StartsWith(address, "unix:") || absl::StartsWith(address, "unix-abstract:");
}

bool IsHostAndPort(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == 0 || colon == absl::string_view::npos) return false;
  const absl::string_view host = text.substr(0, colon), digits = text.substr(colon + 1);
  const bool bracketed = host.front() == '[' && host.back() == ']';
  int port = 0;
  return host.find_first_of(bracketed ? "/@ " : ":/@ ") == absl::string_view::npos &&
         std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(digits, &port) && port >= 1 && port <= kMostPort;
}

bool ConsumeScheme(absl::string_view scheme, absl::string_view& text) {
  if (!absl::StartsWithIgnoreCase(text, scheme)) return false;
  text.remove_prefix(scheme.size());
  return true;
}

// The addresses behind the scheme, where there is one.
std::vector<absl::string_view> HostsOf(absl::string_view address) {
  if (ConsumeScheme("ipv4:", address) || ConsumeScheme("ipv6:", address)) {
    return absl::StrSplit(address, ',');
  }
  if (ConsumeScheme("dns:", address) && ConsumeScheme("//", address)) {
    // Behind the name server to ask.
    address.remove_prefix(std::min(address.find('/'), address.size() - 1) + 1);
  }
  return {address};
}

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

absl::Status CheckAddress(absl::string_view address) {
  const std::vector<absl::string_view> hosts = HostsOf(address);
  const bool is_path = IsUnix(address) && address.back() != ':';
  if (is_path || std::all_of(hosts.begin(), hosts.end(), IsHostAndPort)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("address is '", address,
                                                 "'; it must be host:port, with a port of 1 to ",
                                                 kMostPort, ", or unix:path"));
}

bool StaysOnThisMachine(absl::string_view address) {
  if (IsUnix(address)) return true;
  absl::ConsumePrefix(&address, "dns:///");
  absl::ConsumePrefix(&address, "ipv4:");
  absl::ConsumePrefix(&address, "ipv6:");
  const absl::string_view host = address.substr(0, address.rfind(':'));
  // Not 127.example, which may be anywhere.
  const bool numeric = std::all_of(host.begin(), host.end(),
                                   [](char c) { return absl::ascii_isdigit(c) || c == '.'; });
  return host == "localhost" || host == "[::1]" || (numeric && absl::StartsWith(host, "127."));
}

std::string HostOf(absl::string_view address) {
  if (IsUnix(address)) return "";
  absl::string_view host = HostsOf(address).front();
  host = host.substr(0, host.rfind(':'));
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return std::string(host);
}

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
