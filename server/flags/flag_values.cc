#include "server/flags/flag_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"

namespace gemmd {

std::optional<absl::Duration> ParseDurationText(absl::string_view text) {
  // As gemmctl takes them: a number alone is in seconds.
  if (const std::optional<double> seconds = ParseNumber(text)) return absl::Seconds(*seconds);
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration)) return std::nullopt;
  return duration;
}

std::optional<int64_t> ParseInteger(absl::string_view text) {
  int64_t number;
  if (!absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

std::optional<double> ParseNumber(absl::string_view text) {
  double number;
  if (!absl::SimpleAtod(text, &number) || !std::isfinite(number)) return std::nullopt;
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
