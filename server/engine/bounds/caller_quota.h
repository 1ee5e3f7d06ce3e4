// A caller's quota of the server, and its use of it.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

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
  // Payload received and results sent. Above that the caller waits.
  int64_t bytes_per_second = kNoBound;
};

// Null: a caller without a name and without bounds.
using CallerQuotaPtr = std::shared_ptr<const CallerQuota>;

// For messages: "the caller 'alice' has", or of a server that asks nobody "all callers
// together have". Names have no character that would need an escape.
std::string CallerHas(absl::string_view caller);

struct CallerShare {
  int64_t count = 0;
  int64_t bytes = 0;
};

// How many of something each caller has, and their bytes. Guarded by its owner's lock. Has an entry
// for each caller that has something: so what bounds that bounds its size.
class CallerLedger {
 public:
  // How much more a caller asks for, and of what.
  struct Request {
    absl::string_view count_bound;  // "jobs": the key of the quotas file
    absl::string_view bytes_bound;  // "admitted-bytes"
    int64_t most = kNoBound;
    int64_t most_bytes = kNoBound;
    uint64_t bytes = 0;
    // Whether the caller's use ends by itself, so that it may try again.
    bool passes = false;
    absl::string_view what_to_do;  // "try again when some have ended"
  };
  // OK where the caller may have one more, of so many bytes. Else a BoundError.
  absl::Status Check(absl::string_view caller, const Request& request) const;

  void Add(const std::string& caller, uint64_t bytes);
  void Remove(const std::string& caller, uint64_t bytes);

  CallerShare of(absl::string_view caller) const;
  size_t callers() const { return shares_.size(); }

 private:
  std::map<std::string, CallerShare, std::less<>> shares_;
};

}  // namespace gemmd
