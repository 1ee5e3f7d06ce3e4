// Parses and formats flag values: durations, numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gemmd {

// "30s", "200us", "5m", "1m30s"; "30" and "0.5", which are seconds. Nullopt for anything else.
std::optional<absl::Duration> ParseDurationText(absl::string_view text);

std::optional<int64_t> ParseInteger(absl::string_view text);

// A finite number.
std::optional<double> ParseNumber(absl::string_view text);

}  // namespace gemmd
