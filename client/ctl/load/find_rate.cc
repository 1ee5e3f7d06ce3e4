#include "client/ctl/load/find_rate.h"

#include <algorithm>
#include <cmath>

namespace gemmd::ctl {
namespace {

constexpr double kHighestRate = 1e6;
constexpr double kLowestRate = 0.01;

RateTrial JudgeTrial(const std::vector<Objective>& slo, double rate, const TrialParts& trial) {
  RateTrial judged{.rate = rate};
  for (const Window& part : trial.parts) {
    judged.findings = Judge(slo, part, trial.length);
    judged.held = IsHeld(judged.findings);
    if (!judged.held) break;
  }
  return judged;
}

}  // namespace

TrialParts PartsOf(const Series& series, absl::Duration duration) {
  TrialParts trial{.parts = std::vector<Window>(kTrialParts), .length = duration / kTrialParts};
  for (size_t i = 0; i < series.windows().size(); ++i) {
    const double middle =
        (static_cast<double>(i) + 0.5) * absl::FDivDuration(series.length(), trial.length);
    trial.parts[std::min(static_cast<size_t>(middle), kTrialParts - 1)].Merge(series.windows()[i]);
  }
  return trial;
}

RateSearch FindRate(const std::vector<Objective>& slo, double first, const RunTrial& run) {
  RateSearch search;
  double rate = first;
  bool again = false;  // this rate did not hold the first time
  while (search.trials.size() < kMostTrials) {
    const TrialParts trial = run(rate);
    if (trial.parts.empty()) break;
    search.trials.push_back(JudgeTrial(slo, rate, trial));
    const bool held = search.trials.back().held;
    if (!held && !again) {
      again = true;
      continue;
    }
    again = false;
    if (held) {
      search.highest = rate;
    } else {
      search.lowest_broken = rate;
    }
    if (!search.lowest_broken.has_value()) {
      if (rate >= kHighestRate) break;
      rate = std::min(2 * rate, kHighestRate);
    } else if (search.highest == 0) {
      if (rate <= kLowestRate) break;
      rate = std::max(rate / 2, kLowestRate);
    } else if (*search.lowest_broken <= search.highest * kRatePrecision) {
      break;
    } else {
      rate = std::sqrt(search.highest * *search.lowest_broken);
    }
  }
  return search;
}

}  // namespace gemmd::ctl
