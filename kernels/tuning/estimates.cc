#include "gemm/estimates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gemm/catalogue.h"
#include "gemm/quote.h"
#include "kernels/tuning/features.h"
#include "kernels/tuning/gaussian_process.h"

namespace gemm {
namespace {

constexpr absl::string_view kEstimatesFirstLine = "gemmd estimates 1";
// Bounds of the text.
constexpr size_t kMaxTextBytes = size_t{32} << 20, kMaxTrees = 1000;

// Cutoffs: kernels that are this far behind the first, as a natural logarithm of seconds, are
// corrected no further. The first applies to formulas, the second after each round of trees. The
// corrections left out are smaller.
constexpr double kHopelessByFormula = 1.2, kHopeless = 0.4;
constexpr size_t kTreesOfARound = 10;

// A complete binary tree, its nodes level by level: the children of node i are 2 i + 1 and 2 i + 2.
// All walks take the same number of steps, so that the processor has no branches to predict.
struct Tree {
  static constexpr size_t kLevels = 4, kLeaves = size_t{1} << kLevels, kNodes = kLeaves - 1;
  std::array<float, kNodes> threshold;
  std::array<uint8_t, kNodes> feature;
  std::array<float, kLeaves> leaf;

  float Value(const Features& f) const {
    size_t node = 0;
    for (size_t level = 0; level < kLevels; ++level) {
      node = 2 * node + 1 + (f[feature[node]] > threshold[node] ? 1 : 0);
    }
    return leaf[node - kNodes];
  }
};

using Trees = std::vector<Tree>;  // of a kernel

struct OperandTypes {
  DType a, b;
  Compute compute;
  std::string name;  // in the names of kernels
};

}  // namespace

struct Estimates::Class {
  std::vector<OperandTypes> types;
  std::unordered_map<const Kernel*, size_t> place;  // of a kernel in what follows
  std::vector<Trees> trees;
  // Instead of trees: the measured products, and a function for each kernel.
  std::vector<Point> points;
  std::vector<SmoothFunction> functions;
};

Estimates::Estimates() = default;
Estimates::Estimates(Estimates&&) noexcept = default;
Estimates& Estimates::operator=(Estimates&&) noexcept = default;
Estimates::~Estimates() = default;

class Estimates::Parser {
 public:
  absl::StatusOr<Estimates> Parse(absl::string_view text, absl::string_view source) {
    if (text.size() > kMaxTextBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ": more than ", kMaxTextBytes, " bytes"));
    }
    int number = 0;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      line = absl::StripAsciiWhitespace(line);
      absl::Status status;
      if (number == 1) {
        if (line != kEstimatesFirstLine)
          status = Wrong("the first line", line, kEstimatesFirstLine);
      } else if (!line.empty() && line[0] != '#') {
        status = AddLine(line);
      }
      if (!status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat(source, ", line ", number, ": ", status.message()));
      }
    }
    CloseClass();
    if (all_.devices_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(source, ": no line names a device"));
    }
    return std::move(all_);
  }

 private:
  static absl::Status Wrong(absl::string_view what, absl::string_view value,
                            absl::string_view allowed) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is ", Quoted(value), "; it must be ", allowed));
  }

  absl::Status AddLine(absl::string_view line) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    const auto& [word, rest] = parts;
    if (word == "device") {
      all_.devices_.emplace_back(rest);
      return absl::OkStatus();
    }
    if (word == "class") return BeginClass(rest);
    if (word == "kernel") return BeginKernel(rest);
    if (word == "tree") return AddTree(rest);
    return Wrong("the first word", word, "device, class, kernel or tree");
  }

  absl::Status BeginClass(absl::string_view text) {
    CloseClass();
    class_ = std::make_unique<Class>();
    trees_ = nullptr;
    for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
      const std::pair<absl::string_view, absl::string_view> sides = absl::StrSplit(word, '=');
      const std::vector<absl::string_view> parts = absl::StrSplit(sides.first, ':');
      const auto wrong = [&] { return Wrong("a class", word, "A:B:COMPUTE=NAME"); };
      if (parts.size() != 3 || sides.second.empty()) return wrong();
      const auto a = ParseDType(parts[0]), b = ParseDType(parts[1]);
      const auto compute = ParseCompute(parts[2]);
      if (!a || !b || !compute) return wrong();
      class_->types.push_back({*a, *b, *compute, std::string(sides.second)});
    }
    if (class_->types.empty()) return Wrong("a class", text, "A:B:COMPUTE=NAME for some types");
    return absl::OkStatus();
  }

  absl::Status BeginKernel(absl::string_view name) {
    if (class_ == nullptr) return Wrong("a kernel's place", name, "behind a class");
    class_->trees.emplace_back();
    trees_ = &class_->trees.back();
    for (const OperandTypes& types : class_->types) {
      const auto kernel = FindKernel(absl::StrReplaceAll(name, {{"*", types.name}}));
      if (kernel.ok()) class_->place[*kernel] = class_->trees.size() - 1;
    }
    return absl::OkStatus();
  }

  absl::Status AddTree(absl::string_view text) {
    if (trees_ == nullptr) return Wrong("a tree's place", text, "behind a kernel");
    const std::pair<absl::string_view, absl::string_view> sides = absl::StrSplit(text, '=');
    const std::vector<absl::string_view> nodes =
                                             absl::StrSplit(sides.first, ' ', absl::SkipEmpty()),
                                         leaves =
                                             absl::StrSplit(sides.second, ' ', absl::SkipEmpty());
    if (nodes.size() != Tree::kNodes || leaves.size() != Tree::kLeaves ||
        trees_->size() == kMaxTrees) {
      return Wrong("a tree", absl::StrCat(nodes.size(), " nodes and ", leaves.size(), " leaves"),
                   absl::StrCat(Tree::kNodes, " nodes and ", Tree::kLeaves,
                                " leaves, and the kernel's ", kMaxTrees, "th at most"));
    }
    Tree& tree = trees_->emplace_back();
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(nodes[i], ':');
      uint32_t feature = 0;
      if (!absl::SimpleAtoi(parts.first, &feature) || feature >= kFeatures ||
          !absl::SimpleAtof(parts.second, &tree.threshold[i]) || std::isnan(tree.threshold[i])) {
        return Wrong("a node", nodes[i],
                     absl::StrCat("FEATURE:THRESHOLD, with a feature below ",
                                  static_cast<size_t>(kFeatures)));
      }
      tree.feature[i] = static_cast<uint8_t>(feature);
    }
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (!absl::SimpleAtof(leaves[i], &tree.leaf[i]) || !(std::abs(tree.leaf[i]) < 100)) {
        return Wrong("a leaf", leaves[i], "a number between -100 and 100");
      }
    }
    return absl::OkStatus();
  }

  void CloseClass() {
    if (class_ != nullptr) all_.classes_.push_back(std::move(class_));
  }

  Estimates all_;
  std::unique_ptr<Class> class_;
  Trees* trees_ = nullptr;
};

absl::StatusOr<Estimates> Estimates::Parse(absl::string_view text, absl::string_view source) {
  return Parser().Parse(text, source);
}

std::unique_ptr<Estimates::Class> Estimates::ClassFrom(
    absl::Span<const TimedProduct* const> products) {
  std::vector<const Kernel*> kernels;
  for (const TimedProduct* product : products) {
    for (const auto& [kernel, seconds] : product->seconds) {
      if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end()) {
        kernels.push_back(kernel);
      }
    }
  }
  auto made = std::make_unique<Class>();
  const Types& types = products.front()->problem.types;
  made->types.push_back({types.a, types.b, types.compute, ""});
  // For each kernel, by product: the logarithm of measured over computed time.
  std::vector<std::vector<double>> logs(
      kernels.size(),
      std::vector<double>(products.size(), std::numeric_limits<double>::quiet_NaN()));
  for (size_t i = 0; i < products.size(); ++i) {
    const Problem& problem = products[i]->problem;
    made->points.push_back(PointOf(problem));
    const std::vector<double> formulas = FormulaSeconds(problem, kernels);
    const double base = BaseSeconds(problem, formulas);
    for (const auto& [kernel, seconds] : products[i]->seconds) {
      const auto at =
          static_cast<size_t>(std::find(kernels.begin(), kernels.end(), kernel) - kernels.begin());
      const double computed = std::isinf(formulas[at]) ? base : formulas[at];
      logs[at][i] = std::log(seconds / computed);
    }
  }
  for (size_t at = 0; at < kernels.size(); ++at) {
    std::optional<SmoothFunction> function = FitSmoothly(made->points, logs[at]);
    if (!function) continue;
    made->place[kernels[at]] = made->functions.size();
    made->functions.push_back(*std::move(function));
  }
  made->trees.resize(made->functions.size());
  return made;
}

Estimates Estimates::FromTimes(std::string device, absl::Span<const TimedProduct> products) {
  std::map<std::tuple<DType, DType, Compute>, std::vector<const TimedProduct*>> by_types;
  for (const TimedProduct& product : products) {
    const Types& types = product.problem.types;
    by_types[{types.a, types.b, types.compute}].push_back(&product);
  }
  Estimates all;
  all.devices_.push_back(std::move(device));
  for (const auto& [types, of_types] : by_types) all.classes_.push_back(ClassFrom(of_types));
  return all;
}

const Estimates::Class* Estimates::ClassOf(const Problem& p, size_t& types) const {
  for (const auto& one : classes_) {
    for (types = 0; types < one->types.size(); ++types) {
      const OperandTypes& of = one->types[types];
      if (of.a == p.types.a && of.b == p.types.b && of.compute == p.types.compute) {
        return one.get();
      }
    }
  }
  return nullptr;
}

std::vector<double> FormulaSeconds(const Problem& problem,
                                   absl::Span<const Kernel* const> kernels) {
  std::vector<double> seconds;
  seconds.reserve(kernels.size());
  for (const Kernel* kernel : kernels) {
    seconds.push_back(kernel->estimated_seconds == nullptr ? std::numeric_limits<double>::infinity()
                                                           : kernel->estimated_seconds(problem));
  }
  return seconds;
}

std::vector<double> Estimates::Seconds(const Problem& problem,
                                       absl::Span<const Kernel* const> kernels,
                                       size_t device) const {
  std::vector<double> seconds = FormulaSeconds(problem, kernels);
  const bool measured = problem.batch == 1 && problem.grouped == GroupedBy::kNothing &&
                        !HasBlockScales(problem) && problem.m > 0 && problem.n > 0 && problem.k > 0;
  if (!measured) return seconds;
  Correct(problem, kernels, device, seconds);
  if (problem.types.compute == Compute::kF32x3) {
    // Kernels of f32 take it, too.
    Problem f32 = problem;
    f32.types.compute = Compute::kF32;
    Correct(f32, kernels, device, seconds);
  }
  return seconds;
}

// Corrects the seconds of those kernels that are of the problem's class.
void Estimates::Correct(const Problem& problem, absl::Span<const Kernel* const> kernels,
                        size_t device, std::vector<double>& seconds) const {
  size_t types = 0;
  const Class* const in_class = ClassOf(problem, types);
  if (in_class == nullptr) return;
  const auto is_of_class = [&](const Kernel* kernel) {
    return kernel->types.front().compute == problem.types.compute ||
           in_class->place.contains(kernel);
  };
  std::vector<double> formulas;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (is_of_class(kernels[i])) formulas.push_back(seconds[i]);
  }
  const double base = BaseSeconds(problem, formulas);
  Features shared{};
  SetProductFeatures(problem, base, types, device, shared);
  struct Candidate {
    size_t index;  // of seconds
    size_t place;  // in the class
    double log;    // of its seconds, as far as trees were added
    Features features;
  };
  std::vector<Candidate> candidates;
  candidates.reserve(kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) {
    const auto found = in_class->place.find(kernels[i]);
    if (found == in_class->place.end()) continue;
    const bool formula = kernels[i]->estimated_seconds != nullptr;
    if (formula && std::isinf(seconds[i])) continue;  // refused
    const double of = formula ? seconds[i] : base;
    if (std::log(of / base) > kHopelessByFormula) continue;
    candidates.push_back({i, found->second, std::log(of), shared});
    SetKernelFeatures(problem, *kernels[i], of, base, candidates.back().features);
  }

  std::vector<size_t> running(candidates.size());
  std::iota(running.begin(), running.end(), size_t{0});
  double correction = 0;  // of formulas, the mean
  for (size_t first = 0; !running.empty(); first += kTreesOfARound) {
    double least = std::numeric_limits<double>::infinity();
    bool more = false;
    for (const size_t i : running) {
      Candidate& one = candidates[i];
      const Trees& trees = in_class->trees[one.place];
      const size_t count = trees.size();
      const size_t end = std::min(first + kTreesOfARound, count);
      for (size_t tree = first; tree < end; ++tree) {
        one.log += static_cast<double>(trees[tree].Value(one.features));
      }
      least = std::min(least, one.log);
      more |= end < count;
    }
    if (!more) break;
    running.erase(std::remove_if(running.begin(), running.end(),
                                 [&](size_t i) { return candidates[i].log > least + kHopeless; }),
                  running.end());
  }
  if (!in_class->functions.empty()) {
    const std::vector<float> likeness = Likeness(PointOf(problem), in_class->points);
    for (Candidate& one : candidates) one.log += in_class->functions[one.place].At(likeness);
  }
  for (const Candidate& one : candidates) {
    const double estimate = std::exp(one.log);
    if (std::isfinite(seconds[one.index])) {
      correction +=
          std::log(estimate / seconds[one.index]) / static_cast<double>(candidates.size());
    }
    seconds[one.index] = estimate;
  }
  // A kernel that is newer than the measurements: its formula is taken to be off as the others'
  // are.
  for (size_t i = 0; i < kernels.size(); ++i) {
    const bool is_new = !in_class->place.contains(kernels[i]) && is_of_class(kernels[i]);
    if (is_new) seconds[i] *= std::exp(correction);
  }
}

std::optional<size_t> FastestOf(const Problem& problem, absl::Span<const Kernel* const> kernels,
                                absl::Span<const double> seconds, size_t max_workspace_bytes) {
  // Small jobs share a launch of a kernel that takes batches. Another kernel must be this much
  // faster alone.
  constexpr double kWithoutBatches = 1.05;
  const auto cost = [&](size_t i) {
    return seconds[i] * (kernels[i]->batches ? 1 : kWithoutBatches);
  };
  std::optional<size_t> best;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (std::isinf(seconds[i])) continue;  // nothing is known, or the kernel would refuse it
    if (WorkspaceBytes(*kernels[i], problem) > max_workspace_bytes) continue;
    if (!best || cost(i) < cost(*best)) best = i;
  }
  return best;
}

}  // namespace gemm
