// What one caller may have of the server.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

namespace gemmd {

inline constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();

// Never changes: a caller with other bounds has another one. The engine knows of callers
// no more than this.
struct CallerQuota {
  std::string caller;  // its name; empty where the server asks nobody
  double weight = 1;   // of its share of the devices beside other callers
  // The most of each that the caller may have at the same time.
  int64_t jobs = kNoBound;            // between their header and their last result byte
  int64_t admitted_bytes = kNoBound;  // device memory of those
  int64_t matrices = kNoBound;        // resident, or being made
  int64_t store_bytes = kNoBound;     // of those, on all devices together
  int64_t streams = kNoBound;         // calls that are open
  // Of payload received and results sent. Past it the caller waits.
  int64_t bytes_per_second = kNoBound;
};

// Null: a caller without a name and without bounds.
using CallerQuotaPtr = std::shared_ptr<const CallerQuota>;

}  // namespace gemmd
