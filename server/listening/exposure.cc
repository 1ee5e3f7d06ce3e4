#include "server/listening/exposure.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gemmd {
namespace {

// The first of the addresses that other machines reach.
std::optional<std::string> WideOne(absl::string_view addresses) {
  for (const absl::string_view one : absl::StrSplit(addresses, ',')) {
    const absl::StatusOr<Address> address = ParseAddress(one);
    if (address.ok() && !IsLoopback(*address)) return std::string(one);
  }
  return std::nullopt;
}

bool ListensWide(const absl::StatusOr<Address>& address) {
  return address.ok() && !IsLoopback(*address);
}

bool IsLoopbackNumber(absl::string_view host) {
  in_addr v4{};
  if (inet_pton(AF_INET, std::string(host).c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  in6_addr v6{};
  if (!absl::ConsumePrefix(&host, "[") || !absl::ConsumeSuffix(&host, "]")) return false;
  return inet_pton(AF_INET6, std::string(host).c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace

bool IsLoopback(const Address& address) {
  return address.is_unix() || address.host == "localhost" || IsLoopbackNumber(address.host);
}

absl::StatusOr<std::vector<std::string>> CheckExposure(const Listens& listens,
                                                       const Identity& identity) {
  std::vector<std::string> open;
  std::vector<std::string> forbidden;
  const auto add = [&](Insecure kind, std::string sentence) {
    const bool allowed = listens.insecure == kind || listens.insecure == Insecure::kAll;
    if (!allowed) forbidden.push_back(sentence);
    open.push_back(std::move(sentence));
  };
  if (const std::optional<std::string> wide = WideOne(listens.address); wide.has_value()) {
    const std::string where = absl::StrCat("--address: '", *wide, "' ");
    if (!identity.has_tls()) {
      add(Insecure::kPlaintext,
          absl::StrCat(where,
                       "is reached from other machines without TLS (--tls-certificate, "
                       "--tls-key; or --insecure=plaintext)"));
    }
    if (!identity.asks()) {
      add(Insecure::kAnonymous,
          absl::StrCat(where,
                       "is reached from other machines by anybody, with every role "
                       "(--callers-file or --tls-client-ca; or --insecure=anonymous)"));
    }
  }
  if (ListensWide(ParseTcpAddress(listens.metrics_address)) &&
      identity.options().callers_file.empty()) {
    add(Insecure::kAnonymous,
        absl::StrCat("--metrics-address: '", listens.metrics_address,
                     "' is read from other machines by anybody (--callers-file, with a token that "
                     "has the role metrics; or --insecure=anonymous)"));
  }
  if (forbidden.empty()) return open;
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StrJoin(forbidden, "; "),
                   "; allowed: an address of this machine alone, such as 127.0.0.1:50051, or what "
                   "stands in parentheses (both: --insecure=all)"));
}

bool ScrapesNeedToken(const Listens& listens, const Identity& identity) {
  return ListensWide(ParseTcpAddress(listens.metrics_address)) &&
         !identity.options().callers_file.empty();
}

}  // namespace gemmd
