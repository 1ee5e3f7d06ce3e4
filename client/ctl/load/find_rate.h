// Searches the highest rate of an open loop that holds objectives.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "client/ctl/load/slo.h"

namespace gemmd::ctl {

// The parts of a trial that are judged one by one.
inline constexpr size_t kTrialParts = 3;

// A rate that was tried. It holds where every part holds the objectives. One that does not is tried
// once more, since a pause of the machine is no property of the server.
struct RateTrial {
  double rate = 0;
  bool held = false;
  std::vector<Finding> findings;  // of the first part that did not hold, else of the last
};

struct RateSearch {
  // The highest rate that held; 0 where none did, or where the search was stopped before.
  double highest = 0;
  // The lowest rate that did not hold; nullopt where every rate held.
  std::optional<double> lowest_broken;
  std::vector<RateTrial> trials;
};

// The requests of one trial at a rate, in kTrialParts parts of `length` each; empty: stop.
struct TrialParts {
  std::vector<Window> parts;
  absl::Duration length;
};
using RunTrial = std::function<TrialParts(double rate)>;

// Doubles or halves from `first` on until one rate holds and another does not, then halves the gap
// between them until their ratio is at most kRatePrecision. At most kMostTrials.
inline constexpr double kRatePrecision = 1.01;
inline constexpr size_t kMostTrials = 60;
RateSearch FindRate(const std::vector<Objective>& slo, double first, const RunTrial& run);

// The windows of a series as kTrialParts parts of a trial that took `duration`. The last
// part also has requests that ended later.
TrialParts PartsOf(const Series& series, absl::Duration duration);

}  // namespace gemmd::ctl
