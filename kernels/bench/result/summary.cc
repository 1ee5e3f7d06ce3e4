#include "kernels/bench/result/summary.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/bench/spec/selection.h"

namespace gemm::bench {
namespace {

// The rows of one line that have a share of a baseline.
class Shares {
 public:
  void Add(const Row& row, const std::optional<double>& share) {
    if (!share) return;
    shares_.push_back(*share);
    seconds_ += row.seconds;
    baseline_seconds_ += row.seconds * *share;
    if (*share < kLostShare) ++lost_;
  }
  // Empty if there are none.
  std::optional<OfBaseline> Result() const {
    if (shares_.empty()) return std::nullopt;
    return OfBaseline{.mean = GeometricMean(shares_),
                      .by_time = baseline_seconds_ / seconds_,
                      .shapes = shares_.size(),
                      .lost = lost_};
  }

 private:
  std::vector<double> shares_;
  double seconds_ = 0, baseline_seconds_ = 0;
  size_t lost_ = 0;
};

// The rows of one line of a summary, collected.
struct Collected {
  const Row* first = nullptr;
  std::vector<double> tflops, joules, joules_of_baseline;
  Shares of_vendor, of_tuned_vendor;
  size_t missing = 0;
  double worst_of_bound = 0;

  void Add(const Row& row) {
    if (first == nullptr) first = &row;
    if (!row.measured) {
      ++missing;
      return;
    }
    tflops.push_back(row.tflops);
    of_vendor.Add(row, row.of_vendor);
    of_tuned_vendor.Add(row, row.of_tuned_vendor);
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
          .of_vendor = collected.of_vendor.Result(),
          .of_tuned_vendor = collected.of_tuned_vendor.Result(),
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

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double GeometricMean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double logarithms = 0;
  for (const double value : values) logarithms += std::log(value);
  return std::exp(logarithms / static_cast<double>(values.size()));
}

}  // namespace gemm::bench
