#include "kernels/check/check_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "gemm/reference.h"
#include "gemm/scalars.h"
#include "kernels/reference/error_bound.h"

namespace gemm {
namespace {

// Standard deviations that the residual of a row may have: see row_rule.h.
constexpr double kResidualDeviations = 8;

double SumOfSigns(uint64_t seed, int64_t n) {
  int64_t positive = 0;
  for (int64_t word = 0; 64 * word < n; ++word) {
    const int64_t count = std::min<int64_t>(64, n - 64 * word);
    const uint64_t counted = ~uint64_t{0} >> (64 - count);
    positive += std::popcount(SignWord(seed, word) & counted);
  }
  return static_cast<double>(2 * positive - n);
}

// Rows of an array start where a cache line does.
constexpr size_t kArrayAlignment = 256;

class Cutter {
 public:
  explicit Cutter(void* begin) : begin_(static_cast<std::byte*>(begin)) {}

  template <class Element>
  void Cut(int64_t count, Element*& array) {
    array = begin_ == nullptr ? nullptr : reinterpret_cast<Element*>(begin_ + bytes_);
    const size_t size = static_cast<size_t>(count) * sizeof(Element);
    bytes_ += (size + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
  }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* const begin_;
  size_t bytes_ = 0;
};

// Sums of integers may be beyond 2^53: those of A B r, and of C, bias and D with r.
bool NeedPairs(const Problem& problem) {
  const double n = static_cast<double>(problem.n), k = static_cast<double>(problem.k);
  return n * k * 0x1p14 + 3 * n * 0x1p31 > 0x1p53;
}

// Integer accumulators: the only errors are their rounding to f32 and the epilogue, for a D other
// than s32.
void RuleOfIntegers(const Problem& problem, RowRule& rule) {
  constexpr int64_t kWraps = 1 << 17;  // 128 * 128 * 2^17 is 2^31
  rule.pairs = NeedPairs(problem);
  rule.largest = LargestFinite(ScalarType(problem.types.compute));
  if (problem.types.d != DType::kS32) {
    if (problem.k >= kWraps) rule.modulus = std::abs(problem.alpha) * 0x1p32;
    return;
  }
  // If nothing wraps, the sums are compared as they are. Modulo 2^32, two elements of a row that
  // are off by 2^31 would always cancel, as 2^31 is its own negative.
  const bool may_wrap = problem.k >= kWraps || problem.beta != 0 || problem.bias != BiasAxis::kNone;
  rule.modulus = may_wrap ? 0x1p32 : 0;
  rule.scale_unit = rule.scale_underflow = rule.own = 0;
}

}  // namespace

RowRule MakeRowRule(const Problem& problem, uint64_t seed) {
  const DType accumulator = AccumulatorType(problem.types.compute);
  const DType scale = ScalarType(problem.types.compute);
  const double n = static_cast<double>(problem.n);
  const double k = static_cast<double>(problem.k);
  RowRule rule;
  rule.alpha = problem.alpha;
  rule.beta = problem.beta;
  rule.root_n = std::sqrt(n);
  rule.lambda = std::min(kResidualDeviations, rule.root_n);
  rule.k = k;
  rule.worst_case = WorstCase(problem.types, problem.k);
  rule.drawn_case = DrawnCase(problem.types, problem.k);
  rule.deviations = kLambda;
  rule.scale_unit = UnitRoundoff(scale);
  rule.d_unit = UnitRoundoff(problem.types.d);
  rule.sum_underflow = UnderflowUnit(accumulator) * ProductsOfOne(problem.types);
  rule.operand_underflow = accumulator == DType::kF16 ? 0 : rule.sum_underflow;
  rule.scale_underflow = UnderflowUnit(scale);
  rule.d_underflow = UnderflowUnit(problem.types.d);
  rule.largest = std::min(LargestFinite(accumulator), LargestFinite(scale));
  rule.largest_d = LargestFinite(problem.types.d);
  rule.pairs = problem.types.compute == Compute::kF64;
  rule.own = (n + k + 16) * (rule.pairs ? 0x1p-104 : 0x1p-53);
  rule.bias = problem.bias;
  rule.sign_sum = SumOfSigns(seed, problem.n);
  if (problem.types.compute == Compute::kS32) RuleOfIntegers(problem, rule);
  return rule;
}

size_t LayOut(const Problem& problem, void* scratch, CheckMemory* memory) {
  CheckMemory unused;
  CheckMemory& to = memory == nullptr ? unused : *memory;
  Cutter cutter(scratch);
  for (double** array : {&to.r, &to.zeros, &to.ones}) cutter.Cut(problem.n, *array);
  for (double** array : {&to.y, &to.y_low, &to.b_norms}) cutter.Cut(problem.k, *array);
  cutter.Cut(problem.k * (problem.trans_b ? SplitsFor(problem.n) : 1), to.b_parts);
  cutter.Cut(problem.m * (problem.trans_a ? SplitsFor(problem.k) : 1), to.a_parts);
  cutter.Cut(problem.m, to.d);
  cutter.Cut(problem.m, to.c);
  cutter.Cut(1, to.bias);
  cutter.Cut(1, to.b_norm_sum);
  cutter.Cut(kMaxOutcomes, to.outcomes);
  return cutter.bytes();
}

size_t CheckScratchBytes(const Problem& problem) { return LayOut(problem, nullptr, nullptr); }

Problem AccumulatorProblem(const Problem& problem) {
  Problem product = problem;
  product.types.d = AccumulatorType(problem.types.compute);
  product.alpha = 1;
  product.beta = 0;
  product.bias = BiasAxis::kNone;
  product.activation = Activation::kNone;
  return product;
}

size_t AccumulatorMatrixBytes(const Problem& problem) {
  return static_cast<size_t>(problem.m) *
         static_cast<size_t>(PitchBytes(problem.n, AccumulatorType(problem.types.compute)));
}

Operands AccumulatorOperands(const Problem& problem, const Operands& operands, void* accumulators) {
  const DType type = AccumulatorType(problem.types.compute);
  Operands product = operands;
  product.c = nullptr;
  product.ldc = 0;
  product.bias = nullptr;
  product.d = accumulators;
  product.ldd = PitchBytes(problem.n, type) / static_cast<int64_t>(SizeOf(type));
  return product;
}

}  // namespace gemm
