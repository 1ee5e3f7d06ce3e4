// Objectives of a load test: bounds on latency, errors and rate.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/ctl/load/series.h"

namespace gemmd::ctl {

// One bound, such as "p99<5ms", "errors<0.1%" or "rate>200".
struct Objective {
  enum class Kind { kPercentile, kErrors, kRate };

  std::string text;
  Kind kind = Kind::kPercentile;
  double percentile = 0;  // of kPercentile
  double bound = 0;       // seconds, a share of all requests, or requests per second
};

struct Finding {
  std::string objective;
  std::string measured;
  bool held = false;
};

// Objectives that are separated by commas: pN<DURATION with N of 0 to 100, errors<SHARE% and
// rate>PER-SECOND. At most kMostObjectives.
inline constexpr size_t kMostObjectives = 16;
absl::StatusOr<std::vector<Objective>> ParseSlo(absl::string_view text);

// Judges each objective by the requests of `duration`. Those that were not sent in time count with
// the time that they waited, and as errors. Without a latency no bound on one is held.
std::vector<Finding> Judge(const std::vector<Objective>& slo, const Window& requests,
                           absl::Duration duration);

bool IsHeld(const std::vector<Finding>& findings);

}  // namespace gemmd::ctl
