#include "kernels/bench/result/summary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/bench/result/statistics.h"
#include "kernels/bench/spec/types_pattern.h"

namespace gemm::bench {
namespace {

// What the rows of one line of a summary have in common.
struct Collected {
  const Row* first = nullptr;
  std::vector<double> tflops, of_vendor, of_tuned_vendor, joules, joules_of_baseline;
  size_t missing = 0;
  double worst_of_bound = 0;

  void Add(const Row& row) {
    if (first == nullptr) first = &row;
    if (!row.measured) {
      ++missing;
      return;
    }
    tflops.push_back(row.tflops);
    if (row.of_vendor) of_vendor.push_back(*row.of_vendor);
    if (row.of_tuned_vendor) of_tuned_vendor.push_back(*row.of_tuned_vendor);
    if (row.joules) joules.push_back(*row.joules);
    if (row.joules_of_baseline) joules_of_baseline.push_back(*row.joules_of_baseline);
    worst_of_bound = std::max(worst_of_bound, row.error.of_bound);
  }
};

std::optional<double> MeanOfAny(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return GeometricMean(values);
}

std::string GroupKey(const Row& row) {
  return absl::StrCat(TypesName(row.types), " ", LayoutName(row.layout));
}

KernelMeans MeansOf(const Collected& collected) {
  const Row& row = *collected.first;
  const bool everywhere = collected.joules.size() == collected.tflops.size();
  return {.kernel = row.kernel,
          .family = row.family,
          .types = row.types,
          .layout = row.layout,
          .params = row.params,
          .baseline = row.baseline,
          .shapes = collected.tflops.size(),
          .missing = collected.missing,
          .tflops = GeometricMean(collected.tflops),
          .of_vendor = MeanOfAny(collected.of_vendor),
          .of_tuned_vendor = MeanOfAny(collected.of_tuned_vendor),
          .joules = everywhere ? MeanOfAny(collected.joules) : std::nullopt,
          .joules_of_baseline = MeanOfAny(collected.joules_of_baseline),
          .worst_of_bound = collected.worst_of_bound};
}

// Lines in the order in which their keys first appear.
class Lines {
 public:
  Collected& operator[](const std::string& key) {
    const auto [found, added] = index_.try_emplace(key, lines_.size());
    if (added) lines_.emplace_back();
    return lines_[found->second];
  }
  const std::vector<Collected>& all() const { return lines_; }

 private:
  std::map<std::string, size_t> index_;
  std::vector<Collected> lines_;
};

bool IsBetter(const KernelMeans& x, const KernelMeans& y) {
  return x.missing != y.missing ? x.missing < y.missing : x.tflops > y.tflops;
}

}  // namespace

std::vector<KernelMeans> SummariseKernels(absl::Span<const Row> rows) {
  Lines lines;
  for (const Row& row : rows) {
    lines[absl::StrCat(row.kernel, " ", GroupKey(row), " ", row.params)].Add(row);
  }
  std::vector<KernelMeans> means;
  for (const Collected& collected : lines.all()) means.push_back(MeansOf(collected));
  return means;
}

std::vector<FamilyMeans> SummariseFamilies(absl::Span<const Row> rows) {
  // The best row of each family on each shape.
  std::map<std::string, const Row*> winners;
  for (const Row& row : rows) {
    if (row.baseline || !row.measured) continue;
    const Row*& winner =
        winners[absl::StrCat(row.family, " ", GroupKey(row), " ", ShapeName(row.shape))];
    if (winner == nullptr || row.tflops > winner->tflops) winner = &row;
  }
  Lines lines;
  for (const auto& [key, row] : winners) {
    lines[absl::StrCat(row->family, " ", GroupKey(*row))].Add(*row);
  }
  std::vector<FamilyMeans> families;
  const std::vector<KernelMeans> kernels = SummariseKernels(rows);
  for (const Collected& collected : lines.all()) {
    const KernelMeans means = MeansOf(collected);
    const KernelMeans* best = nullptr;
    for (const KernelMeans& kernel : kernels) {
      const bool same = kernel.family == means.family && kernel.types == means.types &&
                        kernel.layout == means.layout && !kernel.baseline && kernel.shapes > 0;
      if (same && (best == nullptr || IsBetter(kernel, *best))) best = &kernel;
    }
    families.push_back({.best = *best,
                        .per_shape_tflops = means.tflops,
                        .per_shape_of_vendor = means.of_vendor,
                        .per_shape_of_tuned_vendor = means.of_tuned_vendor});
  }
  return families;
}

}  // namespace gemm::bench
