// Sizes in text, as flags and files have them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace gemmd {

// "1048576", "1MiB", "2 GiB"; suffixes B, KiB, MiB, GiB, TiB. Nullopt for anything
// else, and for a size that does not fit in 63 bits.
std::optional<size_t> ParseSize(absl::string_view text);
// The shortest form that ParseSize reads back: "1MiB".
std::string FormatSize(size_t bytes);

}  // namespace gemmd
