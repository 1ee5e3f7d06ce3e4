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

// Reads and checks: every certificate of every file parses, the key is that of the first one, and
// OpenSSL takes all of them. The error names the flag and the file, and quotes nothing of them.
// UNAVAILABLE: a file cannot be read, now at least. INVALID_ARGUMENT: its content is wrong.
absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsPaths& paths);

}  // namespace gemmd
