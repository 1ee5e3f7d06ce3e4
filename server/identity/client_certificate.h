// Reads a client's certificate, which TLS has verified.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gemmd {

// How many common names a subject has, written by RFC 2253 as OpenSSL does and gRPC passes
// it on: "CN=alice,OU=team\, one+CN=bob" has two.
size_t CountCommonNames(absl::string_view subject);

// A certificate is valid from `from` on, and before `until`: wall-clock times.
struct CertificateValidity {
  absl::Time from = absl::InfinitePast();
  absl::Time until = absl::InfiniteFuture();
};

// Of a certificate in PEM. One that cannot be read is valid at no time.
CertificateValidity ValidityOf(absl::string_view pem);

}  // namespace gemmd
