#include "client/ctl/output/format.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gemmd::ctl {

std::string NumberText(double value) {
  if (!std::isfinite(value)) return absl::StrCat(value);
  if (value == 0) return "0";
  const int magnitude = static_cast<int>(std::floor(std::log10(std::fabs(value))));
  const int decimals = std::clamp(2 - magnitude, 0, 9);
  return absl::StrFormat("%.*f", decimals, value);
}

std::string BytesText(double bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (std::fabs(bytes) >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  if (unit == 0) return absl::StrFormat("%.0f B", bytes);
  return absl::StrCat(NumberText(bytes), " ", kUnits[unit]);
}

std::string DurationText(absl::Duration duration) {
  const double seconds = absl::ToDoubleSeconds(duration);
  if (std::fabs(seconds) < 1e-3) return absl::StrCat(NumberText(seconds * 1e6), " us");
  if (std::fabs(seconds) < 1) return absl::StrCat(NumberText(seconds * 1e3), " ms");
  return absl::StrCat(NumberText(seconds), " s");
}

std::string MillisecondsText(absl::Duration duration) {
  return absl::StrFormat("%.3f", absl::ToDoubleMilliseconds(duration));
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace gemmd::ctl
