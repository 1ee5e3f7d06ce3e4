#include "files/size_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gemmd::files {
namespace {

struct Unit {
  absl::string_view suffix;
  uint64_t bytes;
};
constexpr Unit kUnits[] = {{"TiB", uint64_t{1} << 40},
                           {"GiB", uint64_t{1} << 30},
                           {"MiB", uint64_t{1} << 20},
                           {"KiB", uint64_t{1} << 10},
                           {"TB", 1'000'000'000'000},
                           {"GB", 1'000'000'000},
                           {"MB", 1'000'000},
                           {"KB", 1'000},
                           {"kB", 1'000},
                           {"B", 1},
                           {"", 1}};
constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();

// Exactly, unless it has a fraction.
std::optional<uint64_t> Times(absl::string_view number, uint64_t unit) {
  uint64_t whole = 0;
  if (absl::SimpleAtoi(number, &whole)) {
    if (whole > kMost / unit) return std::nullopt;
    return whole * unit;
  }
  double value = 0;
  if (!absl::SimpleAtod(number, &value)) return std::nullopt;
  value *= static_cast<double>(unit);
  if (!(value < static_cast<double>(kMost)) || value != std::floor(value)) return std::nullopt;
  return static_cast<uint64_t>(value);
}

}  // namespace

std::optional<size_t> ParseSize(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const size_t digits =
      std::find_if_not(text.begin(), text.end(),
                       [](char c) { return absl::ascii_isdigit(c) || c == '.'; }) -
      text.begin();
  const absl::string_view suffix = absl::StripAsciiWhitespace(text.substr(digits));
  for (const Unit& unit : kUnits) {
    if (unit.suffix == suffix) return Times(text.substr(0, digits), unit.bytes);
  }
  return std::nullopt;
}

std::string FormatSize(size_t bytes) {
  for (const Unit& unit : kUnits) {
    const bool binary = unit.bytes > 1 && (unit.bytes & (unit.bytes - 1)) == 0;
    if (binary && bytes >= unit.bytes && bytes % unit.bytes == 0) {
      return absl::StrCat(bytes / unit.bytes, unit.suffix);
    }
  }
  return absl::StrCat(bytes);
}

}  // namespace gemmd::files
