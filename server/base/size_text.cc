#include "server/base/size_text.h"

#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gemmd {
namespace {

struct Unit {
  absl::string_view suffix;
  int shift;
};
constexpr Unit kUnits[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}, {"", 0}};

}  // namespace

std::optional<size_t> ParseSize(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const size_t digits =
      std::find_if_not(text.begin(), text.end(), absl::ascii_isdigit) - text.begin();
  const absl::string_view suffix = absl::StripAsciiWhitespace(text.substr(digits));
  uint64_t number;
  if (digits == 0 || !absl::SimpleAtoi(text.substr(0, digits), &number)) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (unit.suffix != suffix) continue;
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) >> unit.shift) {
      return std::nullopt;
    }
    return static_cast<size_t>(number << unit.shift);
  }
  return std::nullopt;
}

std::string FormatSize(size_t bytes) {
  for (const Unit& unit : kUnits) {
    const size_t one = size_t{1} << unit.shift;
    if (unit.shift > 0 && bytes >= one && bytes % one == 0) {
      return absl::StrCat(bytes / one, unit.suffix);
    }
  }
  return absl::StrCat(bytes);
}

}  // namespace gemmd
