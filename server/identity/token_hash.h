// SHA-256 of bearer tokens.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace gemmd {

using TokenHash = std::array<uint8_t, 32>;

TokenHash HashToken(absl::string_view token);

// 64 hexadecimal digits; nullopt for anything else.
std::optional<TokenHash> ParseTokenHash(absl::string_view hex);

// In time that does not depend on where the two differ.
bool SameHash(const TokenHash& x, const TokenHash& y);

}  // namespace gemmd
