#include "server/exposure.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gemmd {
namespace {

bool ListensWide(const absl::StatusOr<Address>& address) {
  return address.ok() && !IsLoopback(*address);
}

}  // namespace

bool IsLoopback(const Address& address) {
  return address.is_unix() || address.host == "localhost" || address.host == "[::1]" ||
         absl::StartsWith(address.host, "127.");
}

absl::StatusOr<std::vector<std::string>> CheckExposure(const Listens& listens,
                                                       const Identity& identity) {
  std::vector<std::string> open;
  if (ListensWide(ParseAddress(listens.address))) {
    const std::string where = absl::StrCat("--address: '", listens.address, "' ");
    if (!identity.has_tls()) {
      open.push_back(absl::StrCat(where,
                                  "is reached from other machines without TLS "
                                  "(--tls-certificate, --tls-key)"));
    }
    if (!identity.asks()) {
      open.push_back(absl::StrCat(where,
                                  "is reached from other machines by anybody, with every "
                                  "role (--callers-file or --tls-client-ca)"));
    }
  }
  if (ListensWide(ParseTcpAddress(listens.metrics_address)) &&
      identity.options().callers_file.empty()) {
    open.push_back(absl::StrCat("--metrics-address: '", listens.metrics_address,
                                "' is read from other machines by anybody (--callers-file, with a "
                                "token that has the role metrics)"));
  }
  if (open.empty() || listens.insecure) return open;
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StrJoin(open, "; "),
                   "; allowed: an address of this machine alone, such as 127.0.0.1:50051, what "
                   "stands in parentheses, or --insecure=true"));
}

bool ScrapesNeedToken(const Listens& listens, const Identity& identity) {
  return ListensWide(ParseTcpAddress(listens.metrics_address)) &&
         !identity.options().callers_file.empty();
}

}  // namespace gemmd
