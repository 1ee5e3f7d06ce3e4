#include "server/identity/callers.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/identity/lines.h"

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

namespace {

constexpr absl::string_view kLineForm =
    "allowed: NAME ROLES sha256:HASH, NAME ROLES certificate:COMMON_NAME, or a comment after #";

uint64_t Prefix(const TokenHash& hash) {
  uint64_t prefix = 0;
  std::memcpy(&prefix, hash.data(), sizeof(prefix));
  return prefix;
}

}  // namespace

absl::Status CheckCallerName(absl::string_view name) {
  const bool printable =
      std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isgraph(c); });
  if (!name.empty() && name.size() <= kMaxCallerNameBytes && printable) return absl::OkStatus();
  // Not quoted: where columns are confused it is a token.
  return absl::InvalidArgumentError(absl::StrCat("a caller's name of ", name.size(),
                                                 " bytes; allowed: 1 to ", kMaxCallerNameBytes,
                                                 " printable ASCII characters without spaces"));
}

absl::StatusOr<Callers> Callers::Parse(absl::string_view text) {
  Callers callers;
  absl::Status status = ForEachLine(text, "credentials", [&callers](absl::string_view line) {
    absl::Status added = callers.AddLine(line);
    if (added.ok()) ++callers.size_;
    return added;
  });
  if (!status.ok()) return status;
  // A file that somebody still writes may be cut anywhere.
  if (callers.size_ == 0) {
    return absl::InvalidArgumentError(absl::StrCat("no credential in it; ", kLineForm));
  }
  if (status = CheckLastLine(text); !status.ok()) return status;
  return callers;
}

Callers Callers::AnyCertificate() {
  Callers callers;
  callers.any_certificate_ = std::make_shared<Caller>(
      Caller{.name = "*", .roles = {CallerRole::kCall, CallerRole::kMatrices}});
  callers.names_.emplace("*");
  return callers;
}

absl::Status Callers::AddLine(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.size() != 3) {
    return absl::InvalidArgumentError(absl::StrCat(words.size(), " words; ", kLineForm));
  }
  if (absl::Status status = CheckCallerName(words[0]); !status.ok()) return status;
  const absl::StatusOr<RoleSet> roles = ParseRoles(words[1]);
  if (!roles.ok()) return roles.status();
  names_.emplace(words[0]);
  auto caller = std::make_shared<Caller>(Caller{.name = std::string(words[0]), .roles = *roles});
  absl::string_view credential = words[2];
  if (absl::ConsumePrefix(&credential, "sha256:")) return AddToken(credential, std::move(caller));
  if (absl::ConsumePrefix(&credential, "certificate:")) {
    return AddCertificate(credential, std::move(caller));
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown kind of credential; ", kLineForm));
}

absl::Status Callers::AddToken(absl::string_view hex, CallerPtr caller) {
  const std::optional<TokenHash> hash = ParseTokenHash(hex);
  if (!hash.has_value()) {
    return absl::InvalidArgumentError(
        "sha256: allowed: 64 hexadecimal digits, which gemmctl token prints");
  }
  if (caller->name == "*") {
    return absl::InvalidArgumentError("the name * stands with certificate:* alone");
  }
  const auto [begin, end] = tokens_.equal_range(Prefix(*hash));
  if (std::any_of(begin, end, [&](const auto& x) { return SameHash(x.second.hash, *hash); })) {
    return absl::InvalidArgumentError("the same token as in a line before");
  }
  tokens_.emplace(Prefix(*hash), Token{*hash, std::move(caller)});
  return absl::OkStatus();
}

absl::Status Callers::AddCertificate(absl::string_view common_name, CallerPtr caller) {
  if ((common_name == "*") != (caller->name == "*")) {
    return absl::InvalidArgumentError("certificate:* stands with the name * alone");
  }
  if (common_name == "*") {
    if (any_certificate_ != nullptr) {
      return absl::InvalidArgumentError("certificate:* stands in a line before");
    }
    any_certificate_ = std::move(caller);
    return absl::OkStatus();
  }
  if (absl::Status status = CheckCallerName(common_name); !status.ok()) return status;
  if (!certificates_.emplace(common_name, std::move(caller)).second) {
    return absl::InvalidArgumentError("the same certificate's name as in a line before");
  }
  return absl::OkStatus();
}

CallerPtr Callers::FindToken(absl::string_view token) const {
  const TokenHash hash = HashToken(token);
  const auto [begin, end] = tokens_.equal_range(Prefix(hash));
  for (auto it = begin; it != end; ++it) {
    if (SameHash(it->second.hash, hash)) return it->second.caller;
  }
  return nullptr;
}

CallerPtr Callers::FindCertificate(absl::string_view common_name) const {
  const auto it = certificates_.find(common_name);
  if (it != certificates_.end()) return it->second;
  // "*" is a name, too. A name of the file belongs to its own lines alone. Else a certificate of
  // that common name would own their matrices.
  if (any_certificate_ == nullptr || names_.count(common_name) > 0 ||
      !CheckCallerName(common_name).ok()) {
    return nullptr;
  }
  return std::make_shared<Caller>(
      Caller{.name = std::string(common_name), .roles = any_certificate_->roles});
}

}  // namespace gemmd
