#include "server/flags/flag_values.h"

#include <cmath>
#include <limits>

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

}  // namespace gemmd
