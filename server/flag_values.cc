#include "server/flag_values.h"

#include <algorithm>
#include <limits>
#include <vector>

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

std::optional<absl::Duration> ParseDurationText(absl::string_view text) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration)) return std::nullopt;
  return duration;
}

std::optional<int64_t> ParseInteger(absl::string_view text) {
  int64_t number;
  if (!absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

size_t EditDistance(absl::string_view x, absl::string_view y) {
  // Wagner and Fischer (1974), one row at a time.
  std::vector<size_t> row(y.size() + 1);
  for (size_t j = 0; j <= y.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= x.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= y.size(); ++j) {
      const size_t replaced = diagonal + (x[i - 1] == y[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[y.size()];
}

}  // namespace gemmd
