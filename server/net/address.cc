#include "server/net/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gemmd {
namespace {

constexpr char kUnixPrefix[] = "unix:";
constexpr size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;
constexpr size_t kMaxHostBytes = 253;  // RFC 1035

absl::StatusOr<int> ParsePort(absl::string_view text) {
  int port = 0;
  // SimpleAtoi alone takes spaces and signs, too.
  const bool digits = !text.empty() && text.size() <= 5 &&
                      std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(text, &port) || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no port"));
  }
  return port;
}

bool IsIpv6(absl::string_view host) {
  in6_addr address;
  const size_t scope = host.find('%');
  if (scope != absl::string_view::npos && host.size() - scope - 1 >= IF_NAMESIZE) return false;
  return inet_pton(AF_INET6, std::string(host.substr(0, scope)).c_str(), &address) == 1;
}

bool IsIpv4OrName(absl::string_view host) {
  if (host.empty() || host.size() > kMaxHostBytes) return false;
  const auto is_name_character = [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
  };
  if (!std::all_of(host.begin(), host.end(), is_name_character)) return false;
  const bool numeric = std::all_of(host.begin(), host.end(),
                                   [](char c) { return absl::ascii_isdigit(c) || c == '.'; });
  in_addr address;
  return !numeric || inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
}

absl::StatusOr<Address> ParseUnixAddress(absl::string_view path) {
  if (path.empty() || path.size() > kMaxPathBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the path has ", path.size(), " bytes; it must have 1 to ", kMaxPathBytes));
  }
  return Address{.path = std::string(path)};
}

}  // namespace

absl::StatusOr<Address> ParseTcpAddress(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return absl::InvalidArgumentError("there is no port");
  const absl::string_view host = text.substr(0, colon);
  absl::string_view inner = host;
  const bool bracketed = absl::ConsumePrefix(&inner, "[") && absl::ConsumeSuffix(&inner, "]");
  if (bracketed ? !IsIpv6(inner) : !IsIpv4OrName(host)) {
    return absl::InvalidArgumentError(absl::StrCat("'", host, "' is no host"));
  }
  const absl::StatusOr<int> port = ParsePort(text.substr(colon + 1));
  if (!port.ok()) return port.status();
  return Address{.host = std::string(host), .port = *port};
}

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  if (absl::ConsumePrefix(&text, kUnixPrefix)) return ParseUnixAddress(text);
  return ParseTcpAddress(text);
}

absl::StatusOr<std::vector<Address>> ParseAddresses(absl::string_view text) {
  std::vector<Address> addresses;
  for (const absl::string_view one : absl::StrSplit(text, ',')) {
    absl::StatusOr<Address> address = ParseAddress(one);
    if (!address.ok()) return address.status();
    addresses.push_back(*std::move(address));
  }
  if (addresses.size() > kMaxAddresses) {
    return absl::InvalidArgumentError(
        absl::StrCat(addresses.size(), " addresses; there may be up to ", kMaxAddresses));
  }
  return addresses;
}

}  // namespace gemmd
