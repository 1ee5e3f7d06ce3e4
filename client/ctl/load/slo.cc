#include "client/ctl/load/slo.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/ctl/output/format.h"
#include "client/ctl/parsing/parse.h"

namespace gemmd::ctl {
namespace {

absl::Status NoObjective(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is no objective such as p99<5ms, errors<0.1% or rate>200"));
}

absl::StatusOr<Objective> ParseObjective(absl::string_view text) {
  Objective objective{.text = std::string(text)};
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "errors<")) {
    objective.kind = Objective::Kind::kErrors;
    if (!absl::ConsumeSuffix(&rest, "%") || !absl::SimpleAtod(rest, &objective.bound) ||
        !(objective.bound > 0 && objective.bound <= 100)) {
      return NoObjective(text);
    }
    objective.bound /= 100;
    return objective;
  }
  if (absl::ConsumePrefix(&rest, "rate>")) {
    objective.kind = Objective::Kind::kRate;
    if (!absl::SimpleAtod(rest, &objective.bound) || !(objective.bound > 0)) {
      return NoObjective(text);
    }
    return objective;
  }
  const std::vector<absl::string_view> sides = absl::StrSplit(rest, absl::MaxSplits('<', 1));
  absl::string_view percentile = sides.front();
  if (sides.size() != 2 || !absl::ConsumePrefix(&percentile, "p") ||
      !absl::SimpleAtod(percentile, &objective.percentile) ||
      !(objective.percentile >= 0 && objective.percentile <= 100)) {
    return NoObjective(text);
  }
  const auto bound = ParseDuration(sides[1]);
  if (!bound.ok()) return bound.status();
  objective.bound = absl::ToDoubleSeconds(*bound);
  return objective;
}

Finding JudgeOne(const Objective& objective, const Window& requests, absl::Duration duration) {
  Finding finding{.objective = objective.text};
  switch (objective.kind) {
    case Objective::Kind::kPercentile: {
      const absl::Duration latency = PercentileOf(requests, objective.percentile);
      finding.held =
          !requests.latencies.empty() && absl::ToDoubleSeconds(latency) < objective.bound;
      finding.measured = requests.latencies.empty() ? "no latency" : DurationText(latency);
      break;
    }
    case Objective::Kind::kErrors: {
      const double share = requests.done == 0 ? 0
                                              : static_cast<double>(requests.failed) /
                                                    static_cast<double>(requests.done);
      finding.held = requests.done > 0 && share < objective.bound;
      finding.measured = absl::StrFormat("%.3g%%", 100 * share);
      break;
    }
    case Objective::Kind::kRate: {
      const double rate = static_cast<double>(requests.done - requests.failed) /
                          std::max(absl::ToDoubleSeconds(duration), 1e-9);
      finding.held = rate > objective.bound;
      finding.measured = absl::StrCat(NumberText(rate), "/s");
      break;
    }
  }
  return finding;
}

}  // namespace

absl::StatusOr<std::vector<Objective>> ParseSlo(absl::string_view text) {
  std::vector<Objective> slo;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    auto objective = ParseObjective(absl::StripAsciiWhitespace(word));
    if (!objective.ok()) return objective.status();
    slo.push_back(*std::move(objective));
  }
  if (slo.size() > kMostObjectives) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", slo.size(), " objectives; at most ", kMostObjectives));
  }
  return slo;
}

std::vector<Finding> Judge(const std::vector<Objective>& slo, const Window& requests,
                           absl::Duration duration) {
  std::vector<Finding> findings;
  for (const Objective& objective : slo) {
    findings.push_back(JudgeOne(objective, requests, duration));
  }
  return findings;
}

bool IsHeld(const std::vector<Finding>& findings) {
  return std::all_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.held; });
}

}  // namespace gemmd::ctl
