#include "server/identity/token_hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"

namespace gemmd {
namespace {

// Fetched once: OpenSSL 3 would look it up for each hash.
const EVP_MD* Sha256() {
  static const EVP_MD* const kSha256 = [] {
    const EVP_MD* fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    if (fetched == nullptr) {
      std::fputs("OpenSSL has no SHA-256\n", stderr);
      std::abort();
    }
    return fetched;
  }();
  return kSha256;
}

}  // namespace

TokenHash HashToken(absl::string_view token) {
  TokenHash hash{};
  unsigned size = 0;
  if (EVP_Digest(token.data(), token.size(), hash.data(), &size, Sha256(), nullptr) != 1 ||
      size != hash.size()) {
    std::fputs("SHA-256 failed\n", stderr);
    std::abort();
  }
  return hash;
}

std::optional<TokenHash> ParseTokenHash(absl::string_view hex) {
  TokenHash hash{};
  if (hex.size() != 2 * hash.size()) return std::nullopt;
  if (!std::all_of(hex.begin(), hex.end(), [](char c) { return absl::ascii_isxdigit(c); })) {
    return std::nullopt;
  }
  const std::string bytes = absl::HexStringToBytes(hex);
  std::copy(bytes.begin(), bytes.end(), hash.begin());
  return hash;
}

bool SameHash(const TokenHash& x, const TokenHash& y) {
  return CRYPTO_memcmp(x.data(), y.data(), x.size()) == 0;
}

}  // namespace gemmd
