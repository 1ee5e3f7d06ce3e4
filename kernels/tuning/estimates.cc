#include "gemm/estimates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gemm/catalogue.h"
#include "gemm/quote.h"
#include "kernels/tuning/features.h"

namespace gemm {
namespace {

constexpr absl::string_view kEstimatesFirstLine = "gemmd estimates 1";
// Bounds of what is read.
constexpr size_t kMaxTextBytes = size_t{32} << 20, kMaxTrees = 1000, kMaxNodes = 255;

// Kernels that are so far behind the first, as a natural logarithm of seconds, are left as they
// are: by their formulas, then after each round of trees. What is left out changes them by less.
constexpr double kHopelessByFormula = 1.2, kHopeless = 0.4;
constexpr size_t kTreesOfARound = 10;

struct Node {
  float threshold;
  int16_t left, right;  // below 0: the leaf -1 - child
  uint8_t feature;
};

// The nodes and leaves of a kernel's trees, one tree behind the other.
struct Trees {
  std::vector<Node> nodes;
  std::vector<float> leaves;
  struct Place {
    uint32_t node, leaf;
    bool constant;  // a leaf alone
  };
  std::vector<Place> places;

  float Value(size_t tree, const Features& f) const {
    const Place& place = places[tree];
    if (place.constant) return leaves[place.leaf];
    int child = 0;
    do {
      const Node& node = nodes[place.node + static_cast<size_t>(child)];
      child = f[node.feature] <= node.threshold ? node.left : node.right;
    } while (child >= 0);
    return leaves[place.leaf + static_cast<size_t>(-1 - child)];
  }
};

struct OperandTypes {
  DType a, b;
  Compute compute;
  std::string name;  // in the names of kernels
};

}  // namespace

struct Estimates::Class {
  std::vector<OperandTypes> types;
  std::vector<Trees> trees;
  absl::flat_hash_map<const Kernel*, size_t> place;  // of a kernel's trees
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
    const Trees::Place place = {static_cast<uint32_t>(trees_->nodes.size()),
                                static_cast<uint32_t>(trees_->leaves.size()), false};
    for (const absl::string_view word : absl::StrSplit(sides.first, ' ', absl::SkipEmpty())) {
      const absl::Status status = AddNode(word);
      if (!status.ok()) return status;
    }
    for (const absl::string_view word : absl::StrSplit(sides.second, ' ', absl::SkipEmpty())) {
      float value = 0;
      if (!absl::SimpleAtof(word, &value) || !(std::abs(value) < 100)) {
        return Wrong("a leaf", word, "a number between -100 and 100");
      }
      trees_->leaves.push_back(value);
    }
    const size_t nodes = trees_->nodes.size() - place.node,
                 leaves = trees_->leaves.size() - place.leaf;
    if (leaves != nodes + 1 || nodes > kMaxNodes || trees_->places.size() == kMaxTrees) {
      return Wrong("a tree", absl::StrCat(nodes, " nodes and ", leaves, " leaves"),
                   "at most 255 nodes with a leaf more, and the kernel's 1000th at most");
    }
    // A child stands behind its parent, so that every walk ends.
    for (size_t i = 0; i < nodes; ++i) {
      const Node& node = trees_->nodes[place.node + i];
      for (const int child : {node.left, node.right}) {
        const bool inner = child > static_cast<int>(i) && child < static_cast<int>(nodes);
        const bool leaf = child < 0 && -1 - child < static_cast<int>(leaves);
        if (!inner && !leaf) {
          return Wrong("a child", absl::StrCat(child), "a later node of its tree, or a leaf of it");
        }
      }
    }
    trees_->places.push_back({place.node, place.leaf, nodes == 0});
    return absl::OkStatus();
  }

  absl::Status AddNode(absl::string_view word) {
    const std::vector<absl::string_view> parts = absl::StrSplit(word, ':');
    int feature = 0, left = 0, right = 0;
    float threshold = 0;
    const bool right_form =
        parts.size() == 4 && absl::SimpleAtoi(parts[0], &feature) &&
        absl::SimpleAtof(parts[1], &threshold) && absl::SimpleAtoi(parts[2], &left) &&
        absl::SimpleAtoi(parts[3], &right) && feature >= 0 &&
        feature < static_cast<int>(kFeatures) && std::abs(left) < 1000 && std::abs(right) < 1000;
    if (!right_form) {
      return Wrong("a node", word,
                   absl::StrCat("FEATURE:THRESHOLD:LEFT:RIGHT, with a feature below ",
                                static_cast<size_t>(kFeatures)));
    }
    trees_->nodes.push_back({.threshold = threshold,
                             .left = static_cast<int16_t>(left),
                             .right = static_cast<int16_t>(right),
                             .feature = static_cast<uint8_t>(feature)});
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
  size_t types = 0;
  const Class* const in_class = measured ? ClassOf(problem, types) : nullptr;
  if (in_class == nullptr) return seconds;

  const double base = BaseSeconds(problem, seconds);
  Features shared{};
  SetProductFeatures(problem, base, types, device, shared);
  struct Candidate {
    size_t index;  // of seconds
    const Trees* trees;
    double log;  // of its seconds, as far as trees were added
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
    candidates.push_back({i, &in_class->trees[found->second], std::log(of), shared});
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
      const size_t count = one.trees->places.size();
      const size_t end = std::min(first + kTreesOfARound, count);
      for (size_t tree = first; tree < end; ++tree) {
        one.log += static_cast<double>(one.trees->Value(tree, one.features));
      }
      least = std::min(least, one.log);
      more |= end < count;
    }
    if (!more) break;
    running.erase(std::remove_if(running.begin(), running.end(),
                                 [&](size_t i) { return candidates[i].log > least + kHopeless; }),
                  running.end());
  }
  for (const Candidate& one : candidates) {
    const double estimate = std::exp(one.log);
    if (std::isfinite(seconds[one.index])) {
      correction +=
          std::log(estimate / seconds[one.index]) / static_cast<double>(candidates.size());
    }
    seconds[one.index] = estimate;
  }
  // A kernel that came after the measurements: its formula is off as the others' are.
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (!in_class->place.contains(kernels[i])) seconds[i] *= std::exp(correction);
  }
  return seconds;
}

}  // namespace gemm
