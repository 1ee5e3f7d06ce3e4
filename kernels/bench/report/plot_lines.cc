#include "kernels/bench/report/plot_lines.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "kernels/bench/result/summary.h"
#include "kernels/bench/spec/selection.h"

namespace gemm::bench {
namespace {

// So many lines can all be highlighted.
constexpr size_t kFewKernels = 6;

std::string NameOf(const KernelMeans& means) {
  return absl::StrCat(means.kernel, means.params.empty() ? "" : " ", means.params, " ",
                      TypesName(means.types), " ", LayoutName(means.layout));
}

std::map<double, double> PointsOf(const KernelMeans& means, absl::Span<const Row> rows) {
  std::map<double, std::vector<double>> samples;
  for (const Row& row : rows) {
    const bool same = row.kernel == means.kernel && row.types == means.types &&
                      row.layout == means.layout && row.params == means.params;
    if (same && row.measured) samples[std::round(CubeEdge(row.shape))].push_back(row.tflops);
  }
  std::map<double, double> points;
  for (const auto& [size, values] : samples) points[size] = GeometricMean(values);
  return points;
}

// Names of the kernels to highlight, beside the baselines.
std::set<std::string> Highlights(absl::Span<const Row> rows,
                                 const std::vector<KernelMeans>& kernels) {
  std::set<std::string> names;
  size_t others = 0;
  for (const KernelMeans& means : kernels) others += means.baseline ? 0 : 1;
  if (others <= kFewKernels) {
    for (const KernelMeans& means : kernels) names.insert(NameOf(means));
    return names;
  }
  std::vector<FamilyMeans> families = SummariseFamilies(rows);
  std::stable_sort(families.begin(), families.end(),
                   [](const auto& x, const auto& y) { return x.best.tflops > y.best.tflops; });
  for (const FamilyMeans& family : families) {
    if (names.size() < kMostHighlights) names.insert(NameOf(family.best));
  }
  return names;
}

// Whether `part` differs between kernels.
template <typename Part>
bool Differ(const std::vector<KernelMeans>& kernels, Part part) {
  return std::any_of(kernels.begin(), kernels.end(),
                     [&](const auto& means) { return part(means) != part(kernels.front()); });
}

// The labels of the highlighted kernels. Baselines keep their whole names, which share no
// words with ours.
std::vector<std::string> Labels(const std::vector<const KernelMeans*>& highlighted,
                                const std::vector<KernelMeans>& kernels) {
  std::vector<std::string> ours;
  for (const KernelMeans* means : highlighted) {
    if (!means->baseline) ours.push_back(means->kernel);
  }
  ours = WithoutSharedWords(ours);
  const bool types = Differ(kernels, [](const KernelMeans& m) { return TypesName(m.types); });
  const bool layout = Differ(kernels, [](const KernelMeans& m) { return LayoutName(m.layout); });
  std::vector<std::string> labels;
  size_t next = 0;
  for (const KernelMeans* means : highlighted) {
    std::vector<std::string> words = {means->baseline ? means->kernel : ours[next++]};
    if (!means->params.empty()) words.push_back(means->params);
    if (types) words.push_back(TypesName(means->types));
    if (layout) words.emplace_back(LayoutName(means->layout));
    labels.push_back(absl::StrJoin(words, " "));
  }
  return labels;
}

}  // namespace

std::vector<std::string> WithoutSharedWords(const std::vector<std::string>& names) {
  if (names.size() < 2) return names;
  std::vector<std::vector<std::string>> words;
  size_t fewest = std::string::npos;
  for (const std::string& name : names) {
    words.push_back(absl::StrSplit(name, '_'));
    fewest = std::min(fewest, words.back().size());
  }
  const auto shared = [&](auto word_at, size_t most) {
    size_t count = 0;
    while (count < most && std::all_of(words.begin(), words.end(), [&](const auto& name) {
             return word_at(name, count) == word_at(words.front(), count);
           })) {
      ++count;
    }
    return count;
  };
  const size_t front = shared([](const auto& name, size_t i) { return name[i]; }, fewest - 1);
  const size_t back = shared([](const auto& name, size_t i) { return name[name.size() - 1 - i]; },
                             fewest - 1 - front);
  std::vector<std::string> rest;
  for (const auto& name : words) {
    rest.push_back(absl::StrJoin(name.begin() + static_cast<std::ptrdiff_t>(front),
                                 name.end() - static_cast<std::ptrdiff_t>(back), "_"));
  }
  return rest;
}

std::vector<PlotLine> PlotLines(absl::Span<const Row> rows) {
  std::vector<KernelMeans> kernels = SummariseKernels(rows);
  std::erase_if(kernels, [](const KernelMeans& means) { return means.shapes == 0; });
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& x, const auto& y) { return x.tflops > y.tflops; });
  const std::set<std::string> chosen = Highlights(rows, kernels);
  std::vector<const KernelMeans*> highlighted;
  std::vector<PlotLine> lines, others;
  for (const KernelMeans& means : kernels) {
    const std::string name = NameOf(means);
    PlotLine line = {.name = name, .label = name, .baseline = means.baseline};
    line.highlighted = means.baseline || chosen.count(name) > 0;
    line.tflops = PointsOf(means, rows);
    if (line.highlighted) highlighted.push_back(&means);
    (line.highlighted ? lines : others).push_back(std::move(line));
  }
  const std::vector<std::string> labels = Labels(highlighted, kernels);
  for (size_t i = 0; i < lines.size(); ++i) lines[i].label = labels[i];
  lines.insert(lines.end(), others.begin(), others.end());
  return lines;
}

std::vector<double> SpreadLabels(const std::vector<double>& wanted, double gap, double low,
                                 double high) {
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t x, size_t y) { return wanted[x] < wanted[y]; });
  // Blocks of touching labels, each at the mean of the places that its labels want.
  struct Block {
    double sum = 0;  // of the first label's place, as each label wants it
    size_t count = 0;
    double begin = 0;
  };
  std::vector<Block> blocks;
  const auto settle = [&](Block& block) {
    const double extent = gap * static_cast<double>(block.count - 1);
    const double mean = block.sum / static_cast<double>(block.count);
    block.begin = std::max(low, std::min(mean, high - extent));
  };
  for (const size_t i : order) {
    blocks.push_back({.sum = wanted[i], .count = 1});
    settle(blocks.back());
    while (blocks.size() > 1) {
      Block& above = blocks[blocks.size() - 2];
      const Block& last = blocks.back();
      const double extent = gap * static_cast<double>(above.count);
      if (above.begin + extent <= last.begin) break;
      above.sum += last.sum - extent * static_cast<double>(last.count);
      above.count += last.count;
      blocks.pop_back();
      settle(above);
    }
  }
  std::vector<double> places(wanted.size());
  size_t next = 0;
  for (const Block& block : blocks) {
    for (size_t i = 0; i < block.count; ++i) {
      places[order[next++]] = block.begin + gap * static_cast<double>(i);
    }
  }
  return places;
}

}  // namespace gemm::bench
