#include "kernels/bench/result/tuning_rounds.h"

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "kernels/bench/result/summary.h"

namespace gemm::bench {
namespace {

TunedProduct ProductOf(const Row& row) {
  return TunedProduct::Of({.m = row.shape.m,
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

void TuningRounds::Add(const Row& row) {
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
    for (const auto& [candidate, seconds] : candidates) best = std::min(best, Median(seconds));
    for (const auto& [candidate, seconds] : candidates) {
      if (Median(seconds) <= factor * best) finalists.insert(candidate.kernel);
    }
  }
  for (const std::string& kernel : wrong_) finalists.erase(kernel);
  return finalists;
}

TuningRounds::Best TuningRounds::Fastest() const {
  Best best;
  for (const auto& [product, candidates] : seconds_) {
    TunedChoice choice;
    for (const auto& [candidate, seconds] : candidates) {
      if (static_cast<int>(seconds.size()) != rounds_ || wrong_.count(candidate.kernel) > 0) {
        continue;
      }
      const double median = Median(seconds);
      if (!choice.kernel.empty() && median >= choice.seconds) continue;
      choice = {candidate.kernel, ParamsOf(candidate.params), median};
    }
    if (!choice.kernel.empty()) best.emplace_back(product, std::move(choice));
  }
  return best;
}

std::optional<double> TuningRounds::SecondsOf(const TunedProduct& product,
                                              const std::string& kernel,
                                              const std::map<std::string, int64_t>& params) const {
  const auto measured = seconds_.find(product);
  if (measured == seconds_.end() || wrong_.count(kernel) > 0) return std::nullopt;
  for (const auto& [candidate, seconds] : measured->second) {
    if (candidate.kernel == kernel && ParamsOf(candidate.params) == params) return Median(seconds);
  }
  return std::nullopt;
}

}  // namespace gemm::bench
