// The server's certificate, its key and the CA of its clients.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gemmd {

struct TlsPaths {
  std::string certificate;  // its chain, PEM; empty: no TLS
  std::string key;          // PEM
  std::string client_ca;    // PEM; empty: clients are not asked for certificates
};

struct TlsMaterial {
  std::string certificate;
  std::string key;
  std::string client_ca;
  absl::Time expires;  // of the server's own certificate
};

// Reads and checks: the certificate parses, the key is its key, the CA has a
// certificate. INVALID_ARGUMENT names the flag and the file, and quotes nothing of them.
absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsPaths& paths);

}  // namespace gemmd
