// Formats quantities for people.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace gemmd::ctl {

// "640 B", "1.50 MiB": three significant digits in the largest fitting unit.
std::string BytesText(double bytes);

// "12.3 us", "4.56 ms", "1.20 s".
std::string DurationText(absl::Duration duration);

// Milliseconds with three decimals and no unit, for a column of times.
std::string MillisecondsText(absl::Duration duration);

// Three significant digits, without an exponent: "0.00123", "45.6", "1234".
std::string NumberText(double value);

// "2024-05-01 12:00:00Z", in UTC.
std::string TimeText(absl::Time time);

}  // namespace gemmd::ctl
