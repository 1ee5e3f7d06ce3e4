#include "kernels/bench/result/auto_share.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/bench/result/summary.h"
#include "kernels/bench/spec/selection.h"

namespace gemm::bench {
namespace {

constexpr size_t kMostWorst = 10;

std::string NameOf(const Row& row) {
  return row.params.empty() ? row.kernel : absl::StrCat(row.kernel, " ", row.params);
}

std::string ClassOf(const Row& row) {
  return absl::StrCat(TypesName(row.types), " ", LayoutName(row.layout));
}

AutoShare ShareOf(const std::vector<std::pair<const Row*, const Row*>>& taken_and_best) {
  const Row& any = *taken_and_best.front().first;
  AutoShare share{.types = any.types, .layout = any.layout, .shapes = taken_and_best.size()};
  std::vector<double> shares;
  double taken_seconds = 0, best_seconds = 0;
  for (const auto& [taken, best] : taken_and_best) {
    shares.push_back(best->seconds / taken->seconds);
    share.below += shares.back() < kLowShare ? 1 : 0;
    taken_seconds += taken->seconds;
    best_seconds += best->seconds;
    share.worst.push_back({taken->shape, shares.back(), taken->note, NameOf(*best)});
  }
  share.mean = GeometricMean(shares);
  share.by_time = best_seconds / taken_seconds;
  std::stable_sort(
      share.worst.begin(), share.worst.end(),
      [](const AutoShare::At& x, const AutoShare::At& y) { return x.share < y.share; });
  share.worst.resize(std::min(share.worst.size(), kMostWorst));
  return share;
}

}  // namespace

std::vector<AutoShare> SummariseAuto(absl::Span<const Row> rows) {
  std::map<std::string, const Row*> fastest;
  for (const Row& row : rows) {
    if (!row.measured || !row.right() || row.kernel == kAuto) continue;
    const Row*& best = fastest[absl::StrCat(ClassOf(row), " ", ShapeName(row.shape))];
    if (best == nullptr || row.seconds < best->seconds) best = &row;
  }
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::pair<const Row*, const Row*>>> classes;
  for (const Row& row : rows) {
    if (!row.measured || row.kernel != kAuto) continue;
    const auto best = fastest.find(absl::StrCat(ClassOf(row), " ", ShapeName(row.shape)));
    if (best == fastest.end()) continue;
    auto& of_class = classes[ClassOf(row)];
    if (of_class.empty()) order.push_back(ClassOf(row));
    of_class.emplace_back(&row, best->second);
  }
  std::vector<AutoShare> shares;
  for (const std::string& name : order) shares.push_back(ShareOf(classes[name]));
  return shares;
}

}  // namespace gemm::bench
