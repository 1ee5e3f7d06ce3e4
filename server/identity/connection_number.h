// A connection's number and the validity of its client's certificate, which gRPC does not tell.
#pragma once

#include <grpc/grpc_security.h>

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gemmd {

// Of a client's certificate, which TLS has verified: how many common names a subject has, written
// by RFC 2253 as OpenSSL does and gRPC passes it on: "CN=alice,OU=team\, one+CN=bob" has two.
size_t CountCommonNames(absl::string_view subject);

// A certificate is valid from `from` on, and before `until`: wall-clock times.
struct CertificateValidity {
  absl::Time from = absl::InfinitePast();
  absl::Time until = absl::InfiniteFuture();
};

// Of a certificate in PEM. One that cannot be read is valid at no time.
CertificateValidity ValidityOf(absl::string_view pem);

// The connection's number, above 0; a new one at the first call, which also reads the client's
// certificate. Call this before anything else reads `connection`: gRPC may have the headers of
// two of its calls on two threads.
uint64_t NumberConnection(grpc_auth_context* connection);

// The property of a numbered connection that ReadValidity reads. Connections without a
// certificate have none.
inline constexpr char kValidityProperty[] = "gemmd_certificate_validity";

// "" where there is no certificate: that is valid at any time.
CertificateValidity ReadValidity(absl::string_view property);

// The number of the call's connection; 0 where it has none.
uint64_t ConnectionOf(grpc_call* call);

}  // namespace gemmd
