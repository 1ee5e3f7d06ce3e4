#include "tests/kernels/check_trial.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>
#include <utility>

#include "gemm/catalogue.h"
#include "gemm/run.h"
#include "tests/kernels/emulated_kernel.h"

namespace gemm::testing {
namespace {

int64_t Whole(int64_t low, int64_t high, std::mt19937_64& random) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

// Mostly small, with some lines and some long sums.
int64_t Extent(std::mt19937_64& random) {
  const int64_t kind = Whole(0, 9, random);
  if (kind == 0) return 1;
  if (kind == 1) return Whole(65, 130, random);
  return Whole(2, 48, random);
}

void FillFrom(GuardedMatrix& matrix, Draw draw, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    for (int64_t j = 0; j < matrix.cols(); ++j) {
      const double x = 2 * unit(random) - 1;
      if (draw == Draw::kConstant) matrix.Set(i, j, 0.1);
      if (draw == Draw::kSparse) matrix.Set(i, j, unit(random) < 0.9 ? 0 : x);
      if (draw == Draw::kWide) matrix.Set(i, j, x * std::exp2(Whole(-4, 4, random)));
    }
  }
}

void Fill(GuardedMatrix& matrix, double reach, Draw draw, uint64_t seed) {
  switch (draw) {
    case Draw::kUniform:
      return matrix.FillUniform(seed, -reach, reach);
    case Draw::kPositive:
      return matrix.FillUniform(seed, 0, reach);
    case Draw::kNormal:
      return matrix.FillNormal(seed);
    default:
      return FillFrom(matrix, draw, seed);
  }
}

// The bits of an element of host memory.
uint64_t BitsAt(const GuardedMatrix& matrix, int64_t index) {
  uint64_t bits = 0;
  const size_t size = SizeOf(matrix.type());
  std::memcpy(&bits, static_cast<const std::byte*>(matrix.data()) + index * size, size);
  return bits;
}
void SetBits(GuardedMatrix& matrix, int64_t index, uint64_t bits) {
  const size_t size = SizeOf(matrix.type());
  std::memcpy(static_cast<std::byte*>(matrix.data()) + index * size, &bits, size);
}

double RootMeanSquare(const GuardedMatrix& d, int64_t row) {
  double squares = 0;
  for (int64_t j = 0; j < d.cols(); ++j) squares += d.At(row, j) * d.At(row, j);
  return std::sqrt(squares / static_cast<double>(d.cols()));
}

}  // namespace

absl::Span<const Types> TrialTypes() { return (*FindKernel("host_reference"))->types; }

std::string ToString(const TrialCase& trial) {
  static constexpr const char* kDrawNames[kDraws] = {"uniform",  "positive", "normal",
                                                     "constant", "sparse",   "wide"};
  static constexpr const char* kMakerNames[kMakers] = {"host_openblas", "host_reference",
                                                       "emulated"};
  std::ostringstream out;
  out << trial.product << ", " << kDrawNames[static_cast<int>(trial.draw)] << " elements, by "
      << kMakerNames[static_cast<int>(trial.maker)];
  return out.str();
}

TrialCase DrawTrial(std::mt19937_64& random) {
  const absl::Span<const Types> all = TrialTypes();
  const Types& types = all[static_cast<size_t>(Whole(0, std::ssize(all) - 1, random))];
  const int64_t k = Whole(0, 9, random) == 0 ? Whole(200, 700, random) : Extent(random);
  TrialCase trial;
  trial.product = RandomCase(types, Extent(random), Extent(random), k, random);
  trial.product.c_is_d = false;
  Problem& problem = trial.product.problem;
  const bool accumulators = Whole(0, 4, random) == 0;
  problem.activation = accumulators ? Activation::kGelu : Activation::kNone;
  if (accumulators) problem = AccumulatorProblem(problem);
  trial.draw = static_cast<Draw>(Whole(0, kDraws - 1, random));
  trial.maker = static_cast<Maker>(Whole(0, kMakers - 1, random));
  return trial;
}

std::unique_ptr<ProductData> ComputeTrial(const TrialCase& trial) {
  auto data = std::make_unique<ProductData>(trial.product);
  const double reach = ReachOf(data->product.problem.types);
  Fill(data->a, reach, trial.draw, trial.product.seed);
  Fill(data->b, reach, trial.draw, trial.product.seed + 1);
  switch (trial.maker) {
    case Maker::kOpenblas:
      RunOnHost(**FindKernel("host_openblas"), *data).IgnoreError();
      break;
    case Maker::kReference:
      RunOnHost(**FindKernel("host_reference"), *data).IgnoreError();
      break;
    case Maker::kEmulated:
      RunEmulated(*data);
      break;
  }
  return data;
}

Checked CheckOn(const ProductData& data, uint64_t seed) {
  const Problem& problem = data.product.problem;
  const size_t bytes = CheckScratchBytes(problem);
  // Not zeroed: the check must not read memory that it did not write.
  std::vector<double> scratch(bytes / sizeof(double) + 32,
                              std::numeric_limits<double>::quiet_NaN());
  const auto address = reinterpret_cast<uintptr_t>(scratch.data());
  void* const aligned = reinterpret_cast<std::byte*>(scratch.data()) + (256 - address % 256) % 256;
  Checked checked;
  checked.rows.resize(static_cast<size_t>(problem.m));
  checked.outcome = CheckHost(
      {.problem = problem, .operands = data.ForReference(), .seed = seed, .scratch = aligned},
      checked.rows.data());
  return checked;
}

Flip FlipOne(const Machine& machine, ProductData& data, const Checked& clean, uint64_t seed,
             std::mt19937_64& random) {
  const Problem& problem = data.product.problem;
  const int64_t i = Whole(0, problem.m - 1, random), j = Whole(0, problem.n - 1, random);
  Flip flip;
  flip.type = problem.types.d;
  flip.bit = static_cast<int>(Whole(0, static_cast<int64_t>(8 * SizeOf(flip.type)) - 1, random));
  const int64_t index = i * data.d.ld() + j;
  const uint64_t bits = BitsAt(data.d, index);
  const double before = data.d.At(i, j);
  SetBits(data.d, index, bits ^ (uint64_t{1} << flip.bit));
  const double after = data.d.At(i, j);
  const Checked checked = machine.check(data, seed);
  SetBits(data.d, index, bits);
  const auto row = static_cast<size_t>(i);
  flip.finite = std::isfinite(after);
  flip.change = std::abs(after - before);
  flip.tolerance = 2 * std::max(clean.rows[row].likely, checked.rows[row].likely);
  flip.caught = !checked.outcome.likely();
  flip.certain = !checked.outcome.possible();
  return flip;
}

FlipTrial TryFlips(int64_t flips, uint64_t seed, const Machine& machine) {
  constexpr int kFlipsOfOne = 4;  // of one product
  std::mt19937_64 random(seed);
  FlipTrial trial;
  while (trial.flips < flips) {
    const TrialCase product = DrawTrial(random);
    const std::unique_ptr<ProductData> data = machine.compute(product);
    for (int x = 0; x < kFlipsOfOne && trial.flips < flips; ++x, ++trial.flips) {
      const uint64_t signs = random();
      const Checked clean = machine.check(*data, signs);
      const Flip flip = FlipOne(machine, *data, clean, signs, random);
      std::vector<BitCounts>& bits = trial.table[flip.type];
      bits.resize(8 * SizeOf(flip.type));
      BitCounts& counts = bits[static_cast<size_t>(flip.bit)];
      ++counts.flips;
      counts.above += flip.above() ? 1 : 0;
      counts.caught += flip.caught ? 1 : 0;
      counts.certain += flip.certain ? 1 : 0;
      if (const double size = RootMeanSquare(data->d, 0); size > 0 && std::isfinite(size)) {
        trial.tolerances[flip.type].push_back(2 * clean.rows[0].likely / size);
      }
      if (!flip.above() || flip.caught) continue;
      ++counts.missed;
      if (trial.missed++ == 0) {
        trial.first_missed = ToString(product) + ", bit " + std::to_string(flip.bit);
      }
    }
  }
  return trial;
}

CleanTrial TryClean(int64_t products, uint64_t seed, const Machine& machine) {
  std::mt19937_64 random(seed);
  CleanTrial trial;
  for (; trial.products < products; ++trial.products) {
    const TrialCase product = DrawTrial(random);
    const CheckOutcome outcome = machine.check(*machine.compute(product), random()).outcome;
    trial.with_uncovered_rows += outcome.uncovered_rows > 0 ? 1 : 0;
    trial.beyond_possible += outcome.possible() ? 0 : 1;
    trial.largest_of_likely = std::max(trial.largest_of_likely, outcome.of_likely);
    trial.largest_of_possible = std::max(trial.largest_of_possible, outcome.of_possible);
    if (outcome.likely()) continue;
    if (trial.beyond_likely++ == 0) trial.first_beyond = ToString(product);
  }
  return trial;
}

}  // namespace gemm::testing
