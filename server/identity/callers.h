// The callers that a server knows, by their credentials.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/identity/roles.h"

namespace gemmd {

// SHA-256 of bearer tokens.
using TokenHash = std::array<uint8_t, 32>;

TokenHash HashToken(absl::string_view token);

// 64 hexadecimal digits; nullopt for anything else.
std::optional<TokenHash> ParseTokenHash(absl::string_view hex);

// In time that does not depend on where the two differ.
bool SameHash(const TokenHash& x, const TokenHash& y);

inline constexpr size_t kMaxCallerNameBytes = 128;

// One for each version of the callers file; never changes.
class Callers {
 public:
  // The text of a callers file, with at least one credential. A line ends with a newline.
  // It is empty or has three words, and a comment where a # begins it or follows white space:
  //
  //   alice  call,matrices  sha256:<64 hexadecimal digits of a token's SHA-256>
  //   bob    all            certificate:bob.example
  //   *      call           certificate:*
  //
  // A caller may have several lines, with roles of their own. In the last one the
  // caller's name is the certificate's, which is unknown where other lines have that name.
  // INVALID_ARGUMENT names the line and quotes nothing of it.
  static absl::StatusOr<Callers> Parse(absl::string_view text);

  // Every verified certificate, with the roles call and matrices.
  static Callers AnyCertificate();

  // Null for an unknown token.
  CallerPtr FindToken(absl::string_view token) const;
  // Null for a name that no line has.
  CallerPtr FindCertificate(absl::string_view common_name) const;

  // Whether a caller may have this name.
  bool MayName(absl::string_view name) const {
    return any_certificate_ != nullptr || names_.find(name) != names_.end();
  }

  // The number of lines with a credential.
  size_t size() const { return size_; }

 private:
  struct Token {
    TokenHash hash;
    CallerPtr caller;
  };

  absl::Status AddLine(absl::string_view line);
  absl::Status AddToken(absl::string_view hex, CallerPtr caller);
  absl::Status AddCertificate(absl::string_view common_name, CallerPtr caller);

  // Keyed by the first bytes of the hash. These say nothing of the token, so that the time of this
  // look-up may be seen; the whole hash is compared in constant time.
  std::unordered_multimap<uint64_t, Token> tokens_;
  std::map<std::string, CallerPtr, std::less<>> certificates_;
  CallerPtr any_certificate_;  // its name is not used
  std::set<std::string, std::less<>> names_;
  size_t size_ = 0;
};

// OK for 1 to kMaxCallerNameBytes printable ASCII characters without spaces.
absl::Status CheckCallerName(absl::string_view name);

}  // namespace gemmd
