// The bound that an error reports, beside its message: for the status details of the contract, and
// for metrics.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gemmd {

// When to try again if nothing better is known: by then a job may have ended.
inline constexpr absl::Duration kRetrySoon = absl::Milliseconds(100);

struct ReachedBound {
  std::string bound;  // its name: a flag without dashes, or a key of the quotas file
  std::optional<std::string> caller = {};  // whose bound it is; nullopt: everybody's
  // When to try again. Only where nothing of the request was done, and where the bound may
  // pass by itself.
  std::optional<absl::Duration> retry_after = {};
};

// RESOURCE_EXHAUSTED. The message names the field, the value and the bound.
absl::Status BoundError(const ReachedBound& reached, absl::string_view message);

// The argument of BoundError; nullopt for another status.
std::optional<ReachedBound> ReachedBoundOf(const absl::Status& status);

}  // namespace gemmd
