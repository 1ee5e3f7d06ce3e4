#include "client/ctl/tune/rounds.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace gemmd::ctl {
namespace {

// Of at least one value.
double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

gemm::TunedProduct ProductOf(const gemm::bench::Row& row) {
  return gemm::TunedProduct::Of({.m = row.shape.m,
                                 .n = row.shape.n,
                                 .k = row.shape.k,
                                 .types = row.types,
                                 .trans_a = row.layout.trans_a,
                                 .trans_b = row.layout.trans_b});
}

}  // namespace

std::map<std::string, int64_t> ParamsOf(const std::string& text) {
  std::map<std::string, int64_t> params;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
    int64_t value = 0;
    if (absl::SimpleAtoi(parts.second, &value)) params[parts.first] = value;
  }
  return params;
}

void TuningRounds::Add(const gemm::bench::Row& row) {
  if (!row.measured || row.baseline) return;
  if (!row.right()) {
    wrong_.insert(row.kernel);
    return;
  }
  seconds_[ProductOf(row)][{row.kernel, row.params}].push_back(row.seconds);
}

std::set<std::string> TuningRounds::Finalists(double factor) const {
  std::set<std::string> finalists;
  for (const auto& [product, candidates] : seconds_) {
    double best = std::numeric_limits<double>::infinity();
    for (const auto& [candidate, seconds] : candidates) best = std::min(best, MedianOf(seconds));
    for (const auto& [candidate, seconds] : candidates) {
      if (MedianOf(seconds) <= factor * best) finalists.insert(candidate.kernel);
    }
  }
  for (const std::string& kernel : wrong_) finalists.erase(kernel);
  return finalists;
}

TuningRounds::Best TuningRounds::Fastest() const {
  Best best;
  for (const auto& [product, candidates] : seconds_) {
    gemm::TunedChoice choice;
    for (const auto& [candidate, seconds] : candidates) {
      if (static_cast<int>(seconds.size()) != rounds_ || wrong_.count(candidate.kernel) > 0) {
        continue;
      }
      const double median = MedianOf(seconds);
      if (!choice.kernel.empty() && median >= choice.seconds) continue;
      choice = {candidate.kernel, ParamsOf(candidate.params), median};
    }
    if (!choice.kernel.empty()) best.emplace_back(product, std::move(choice));
  }
  return best;
}

}  // namespace gemmd::ctl
