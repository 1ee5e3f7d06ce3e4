#include "client/cpp/calls/address.h"

#include <algorithm>
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

}  // namespace gemmd::client
