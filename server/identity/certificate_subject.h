// The subject of a certificate.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace gemmd {

// How many common names a subject has, written by RFC 2253 as OpenSSL does and gRPC passes
// it on: "CN=alice,OU=team\, one+CN=bob" has two.
size_t CountCommonNames(absl::string_view subject);

}  // namespace gemmd
