// Reads the certificates, keys and tokens that a client shows, and the roots that it trusts.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/include/gemmd/client/options.h"
#include "grpcpp/security/credentials.h"

namespace gemmd::client {

// The file's content; empty for an empty path. INVALID_ARGUMENT names the field and the path of
// one that cannot be read, is empty or is too long.
absl::StatusOr<std::string> ReadCredentialFile(absl::string_view field, const std::string& path);

// Of plaintext where there are no options. INVALID_ARGUMENT names the field and the file that
// does not hold what it is for: gRPC takes any bytes, and then finds no way to the server.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ChannelCredentials(
    const std::optional<TlsOptions>& tls);

}  // namespace gemmd::client
