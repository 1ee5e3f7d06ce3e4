// Parses and formats flag values: sizes, durations, numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gemmd {

// "1048576", "1MiB", "2 GiB"; suffixes B, KiB, MiB, GiB, TiB. Nullopt for anything
// else, and for a size that does not fit in 63 bits.
std::optional<size_t> ParseSize(absl::string_view text);
// The shortest form that ParseSize reads back: "1MiB".
std::string FormatSize(size_t bytes);

// "30s", "200us", "5m", "1m30s", "0". Nullopt for anything else.
std::optional<absl::Duration> ParseDurationText(absl::string_view text);

std::optional<int64_t> ParseInteger(absl::string_view text);

// The number of one-character changes that turn one word into the other.
size_t EditDistance(absl::string_view x, absl::string_view y);

}  // namespace gemmd
