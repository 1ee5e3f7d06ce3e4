// Times in sentences.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace gemmd {

// To three digits or so: "1.23s", "12.34ms", "150ns".
inline std::string Rounded(absl::Duration time) {
  const absl::Duration unit = time >= absl::Seconds(1)        ? absl::Milliseconds(10)
                              : time >= absl::Milliseconds(1) ? absl::Microseconds(10)
                                                              : absl::Nanoseconds(10);
  return absl::FormatDuration(absl::Trunc(time, unit));
}

}  // namespace gemmd
