#include "kernels/bench/measure/device_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "gemm/catalogue.h"
#include "kernels/bench/measure/benchmark.h"

namespace gemm::bench {
namespace {

constexpr int kProductsOfClass = 96;
// The layouts of every five products in turn: most callers have B as it is, or transposed.
constexpr std::array<Layout, 5> kStored = {{{}, {false, true}, {}, {false, true}, {true, false}}};
constexpr std::array<Layout, 3> kDistinct = {{{}, {false, true}, {true, false}}};
constexpr double kMostFlops = 3e10;

// A time only has to say which kernel is faster, and by how much.
constexpr ComparisonRules kQuick = {.warmup = 1,
                                    .iterations = 3,
                                    .sample_time = absl::Microseconds(100),
                                    .cutoff = 4,
                                    .baselines = false,
                                    .vendor_algorithms = 0,
                                    .checked_lines = 2};

// The i-th point of Roberts's sequence in three dimensions (M. Roberts, "The Unreasonable
// Effectiveness of Quasirandom Sequences"): the powers of 1 / 1.2207, without their whole parts.
double Spread(int i, int dimension) {
  constexpr std::array<double, 3> kSteps = {0.8191725134, 0.6710436067, 0.5497004779};
  const double value = 0.5 + kSteps[static_cast<size_t>(dimension)] * i;
  return value - std::floor(value);
}

// 8 to 8192, of five a multiple of 64 once and of 8 twice.
int64_t ExtentOf(int i, int dimension) {
  constexpr double kLeastLog = 3, kLogRange = 10;
  constexpr std::array<int64_t, 5> kMultiples = {64, 8, 1, 8, 1};
  const double size = std::exp2(kLeastLog + kLogRange * Spread(i, dimension));
  const int64_t multiple = kMultiples[static_cast<size_t>((i + dimension) % 5)];
  const auto times = static_cast<int64_t>(std::round(size / static_cast<double>(multiple)));
  return std::max<int64_t>(times, 1) * multiple;
}

// Those that `auto` may take. A kernel is measured in its own compute mode alone.
std::vector<Candidate> CandidatesFor(const Types& types, const Layout& layout,
                                     const DeviceCaps& device) {
  std::vector<Candidate> candidates;
  for (const Kernel* kernel : Catalogue()) {
    if (!RunsOn(*kernel, device) || !MayBeChosen(*kernel, types)) continue;
    if (kernel->types.front().compute != types.compute) continue;
    candidates.push_back({.kernel = kernel,
                          .types = types,
                          .layout = layout,
                          .params = *ResolveParams(*kernel, {})});
  }
  return candidates;
}

void Add(absl::Span<const Row> rows, std::vector<TimedProduct>& products,
         std::set<std::string>& wrong) {
  const Row& any = rows.front();
  TimedProduct product{.problem = {.m = any.shape.m,
                                   .n = any.shape.n,
                                   .k = any.shape.k,
                                   .types = any.types,
                                   .trans_a = any.layout.trans_a,
                                   .trans_b = any.layout.trans_b}};
  for (const Row& row : rows) {
    if (!row.measured) continue;
    if (!row.right()) wrong.insert(row.kernel);
    product.seconds.emplace_back(*FindKernel(row.kernel), row.seconds);
  }
  if (!product.seconds.empty()) products.push_back(std::move(product));
}

void LeaveOut(const std::set<std::string>& wrong, std::vector<TimedProduct>& products) {
  for (TimedProduct& product : products) {
    std::erase_if(product.seconds, [&](const std::pair<const Kernel*, double>& one) {
      return wrong.contains(std::string(one.first->name));
    });
  }
}

}  // namespace

absl::Span<const Types> ClassesToMeasure() {
  using enum DType;
  static constexpr std::array<Types, 8> kClasses = {{{kF32, kF32, kF32, Compute::kF32},
                                                     {kF16, kF16, kF16, Compute::kF32},
                                                     {kBF16, kBF16, kBF16, Compute::kF32},
                                                     {kF32, kF32, kF32, Compute::kTF32},
                                                     {kF64, kF64, kF64, Compute::kF64},
                                                     {kE4M3, kE4M3, kF16, Compute::kF32},
                                                     {kS8, kS8, kS32, Compute::kS32},
                                                     {kF32, kF32, kF32, Compute::kF32x3}}};
  return kClasses;
}

std::vector<Shape> ShapesToMeasure(const Layout& layout) {
  std::vector<Shape> shapes;
  for (int i = 0, taken = 0; taken < kProductsOfClass; ++i) {
    const Shape shape = {.m = ExtentOf(i, 0), .n = ExtentOf(i, 1), .k = ExtentOf(i, 2)};
    if (Flops(shape) > kMostFlops) continue;
    if (kStored[static_cast<size_t>(taken++) % kStored.size()] == layout) shapes.push_back(shape);
  }
  return shapes;
}

absl::StatusOr<std::vector<TimedProduct>> MeasureTimes(Backend& backend, absl::Duration budget,
                                                       const std::function<bool()>& cancelled,
                                                       const std::function<absl::Time()>& now) {
  const absl::Time end = now() + budget;
  std::vector<TimedProduct> products;
  std::set<std::string> wrong;
  BenchmarkObserver observer;
  observer.cancelled = cancelled;
  observer.now = now;
  observer.on_rows = [&](absl::Span<const Row> rows) { Add(rows, products, wrong); };
  auto runs_left = static_cast<int>(ClassesToMeasure().size() * kDistinct.size());
  for (const Types& types : ClassesToMeasure()) {
    for (const Layout& layout : kDistinct) {
      const absl::Duration share = (end - now()) / runs_left--;
      BenchmarkPlan plan = {.shapes = ShapesToMeasure(layout),
                            .candidates = CandidatesFor(types, layout, backend.caps()),
                            .rules = kQuick,
                            .budget = share};
      if (plan.candidates.empty() || share <= absl::ZeroDuration()) continue;
      const absl::Status status = RunBenchmark(backend, plan, observer);
      if (!status.ok()) return status;
    }
  }
  LeaveOut(wrong, products);
  return products;
}

}  // namespace gemm::bench
