// Keeps a server from serving strangers by mistake.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/identity/identity.h"
#include "server/net/address.h"

namespace gemmd {

// The access that --insecure allows from other machines.
enum class Insecure : uint8_t {
  kNone,
  kPlaintext,  // connections without TLS
  kAnonymous,  // callers that nobody asks who they are
  kAll,
};

struct Listens {
  std::string address;          // --address: one or more, with commas between them
  std::string metrics_address;  // --metrics-address
  Insecure insecure = Insecure::kNone;
};

// Whether only this machine reaches the address: a Unix socket, localhost, 127.0.0.0/8
// or ::1.
bool IsLoopback(const Address& address);

// A sentence for each thing that is open to the network without protection. Each of several
// addresses counts: connections of all are served alike. INVALID_ARGUMENT for such things that
// --insecure does not allow. Addresses that do not parse are left to those who listen on them.
absl::StatusOr<std::vector<std::string>> CheckExposure(const Listens& listens,
                                                       const Identity& identity);

// Whether a scrape of /metrics must show a token: where it comes from other machines, and
// the server knows its callers.
bool ScrapesNeedToken(const Listens& listens, const Identity& identity);

}  // namespace gemmd
