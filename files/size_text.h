// Sizes in text, as flags, options and files have them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace gemmd::files {

// "1048576", "1MiB", "1.5 GiB"; suffixes B, KiB, MiB, GiB, TiB (powers of 1024), and kB, KB, MB,
// GB, TB (powers of 1000). Nullopt for anything else, for a part of a byte, and for a size that
// does not fit in 63 bits.
std::optional<size_t> ParseSize(absl::string_view text);
// The shortest form that ParseSize reads back: "1MiB".
std::string FormatSize(size_t bytes);

}  // namespace gemmd::files
