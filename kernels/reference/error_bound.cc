#include "kernels/reference/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gemm/scalars.h"
#include "kernels/numeric/activation.h"
#include "kernels/numeric/wrapping.h"

namespace gemm {
namespace {

// Steps beyond k: tensor cores align the products of a step to the largest
// before they add, which for a small k costs a little more than k roundings.
constexpr double kExtraSteps = 4;

// Truncation where hardware may not round: 10 explicit significand bits.
constexpr double kTf32Unit = 0x1p-10;

// Roundings of both elements' low numbers, where one element may be near the largest, and the
// product of the low numbers (kernels/hopper/f32x3.h).
constexpr double kF32x3Unit = 1.01 * (0x1p-22 + 0x1p-23 + 0x1p-22);
// High numbers may be larger than their elements by this share.
constexpr double kF32x3Excess = 0x1p-10;
// Tensor cores truncate to f32. After this many products the sum is added in f32, to nearest.
constexpr double kF32x3Steps = 32;

// fp8 accumulators in the tensor cores of sm_89 and sm_90 keep 13 explicit significand
// bits and are truncated to them (DeepSeek-AI, "DeepSeek-V3 Technical Report",
// arXiv:2412.19437, section 3.3.2; Zhang et al., "SageAttention2",
// arXiv:2411.10958, section 3.3). After this many products they are added in f32.
constexpr double kFp8AccumulatorUnit = 0x1p-13;
constexpr double kFp8AccumulatorSteps = 128;

// Errors of erf and of the multiplications about it, in unit roundoffs of the
// scale type, relative to |x|.
constexpr double kGeluRoundings = 8;
// The largest slope of GELU, at sqrt 2.
constexpr double kGeluLipschitz = 1.13;

// Tensor cores truncate sums in f32, and round sums in f16 to nearest (Fasi, Higham, Mikaitis and
// Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7:e330, 2021,
// section 4).
bool Truncates(const Types& types) {
  return types.compute == Compute::kTF32 ||
         (types.compute == Compute::kF32 && types.a != DType::kF32);
}

bool OfIntegers(const Types& types) { return types.compute == Compute::kS32; }

// The error of integer accumulators. Additions are exact. For a D of floats, the accumulators are
// rounded to f32.
double IntegerUnit(const Types& types) {
  return types.d == DType::kS32 ? 0 : UnitRoundoff(DType::kF32);
}

// The value of an exact sum in an accumulator that wraps.
double Wrapped(double sum) { return static_cast<double>(WrappingS32(sum)); }

// One rounding of the accumulation. Truncation is twice the unit.
double AccumulationUnit(const Types& types) {
  const double u = UnitRoundoff(AccumulatorType(types.compute));
  return Truncates(types) ? 2 * u : u;
}

// A value and how far a right kernel may be from it, so far.
struct Bounded {
  double value;
  double error;

  double reach() const { return std::abs(value) + error; }
};

// One rounding to `type`; through f32 on the way to 16 bits, hence the excess.
void Round(DType type, Bounded& x) {
  constexpr double kDoubleRounding = 1 + 0x1p-10;
  x.error += kDoubleRounding * UnitRoundoff(type) * x.reach() + UnderflowUnit(type);
}

// The largest value that an element's products may reach with their block scales.
double ScaledReach(const Problem& problem, const ElementTerms& t) {
  return t.largest_scale_a * t.largest_scale_b * LargestFinite(problem.types.a) *
         LargestFinite(problem.types.b) * static_cast<double>(std::min(problem.k, kScaleBlock));
}

// The error of scaling blocks.
double ScalingError(const Problem& problem, const ElementTerms& t, Elements elements) {
  if (!HasBlockScales(problem)) return 0;
  const double blocks = std::ceil(static_cast<double>(problem.k) / kScaleBlock);
  double reach = t.abs_dot;
  if (elements == Elements::kDrawn) {
    reach = std::min(reach, kLambda * std::sqrt(blocks * t.dot_of_squares));
  }
  const double largest_a = LargestFinite(problem.types.a);
  const double largest_b = LargestFinite(problem.types.b);
  const double underflow =
      UnderflowUnit(DType::kF32) * (t.abs_a * largest_b + t.abs_b * largest_a +
                                    static_cast<double>(problem.k) * largest_a * largest_b +
                                    blocks * (t.largest_scale_a + t.largest_scale_b));
  return 2.01 * UnitRoundoff(DType::kF32) * reach + underflow;
}

Bounded SumOfProducts(const Problem& problem, const ElementTerms& t, Elements elements) {
  const DType type = AccumulatorType(problem.types.compute);
  const double k = static_cast<double>(problem.k);
  if (OfIntegers(problem.types)) {
    const double wrapped = Wrapped(t.dot);
    return {wrapped, IntegerUnit(problem.types) * std::abs(wrapped)};
  }
  Bounded sum{t.dot, WorstCase(problem.types, problem.k) * t.abs_dot};
  if (elements == Elements::kDrawn) {
    sum.error =
        std::min(sum.error, DrawnCase(problem.types, problem.k) * std::sqrt(t.dot_of_squares));
  }
  sum.error += ScalingError(problem, t, elements);
  // The reference's own sum.
  sum.error += (k + 2) * UnitRoundoff(DType::kF64) * t.abs_dot;
  // Operands, products and accumulators that underflow.
  sum.error += UnderflowUnit(type) * ProductsOfOne(problem.types) *
               (k + (type == DType::kF16 ? 0 : t.abs_a + t.abs_b));
  return sum;
}

// alpha * sum + beta * c. Three roundings each: the factor's, the product's and
// the addition's.
Bounded Scale(const Problem& problem, const Bounded& sum, double c) {
  const DType scale = ScalarType(problem.types.compute);
  const double roundings = 3.01 * UnitRoundoff(scale);
  const double scaled_reach = std::abs(problem.alpha) * sum.reach();
  const double beta_c = problem.beta * c;
  Bounded x{problem.alpha * sum.value + beta_c, std::abs(problem.alpha) * sum.error};
  x.error += roundings * (scaled_reach + std::abs(beta_c));
  // alpha and beta may be subnormal in the scale type.
  x.error += UnderflowUnit(scale) * (sum.reach() + std::abs(c) + 3);
  return x;
}

// The element of an s32 D, whose sums wrap.
double IntegerElement(const Problem& problem, const ElementTerms& t) {
  const double sum = Wrapped(problem.alpha * Wrapped(t.dot) + problem.beta * t.c + t.bias);
  return Activate(problem.activation, problem.leaky_slope, sum);
}

Bounded ApplyActivation(const Problem& problem, const Bounded& x) {
  const double u = UnitRoundoff(ScalarType(problem.types.compute));
  Bounded y{Activate(problem.activation, problem.leaky_slope, x.value), x.error};
  if (problem.activation == Activation::kGelu) {
    y.error = kGeluLipschitz * x.error + kGeluRoundings * u * x.reach();
  }
  if (problem.activation == Activation::kLeakyRelu) {
    const double slope = std::abs(problem.leaky_slope);
    y.error = std::max(1.0, slope) * x.error + 3 * u * slope * x.reach();
  }
  return y;
}

// The errors before anything is added to an accumulator of the full type. They are from rounding
// operands to TF32, from splitting them into two such numbers, and from the tensor cores' own
// accumulators, if those are promoted.
double MultiplicationBound(const Types& types, int64_t k) {
  const auto lost = [k](double steps, double unit) {
    const double sum = (std::min(static_cast<double>(k), steps) + kExtraSteps) * unit;
    return sum / (1 - sum);
  };
  if (types.compute == Compute::kTF32) return 2 * kTf32Unit + kTf32Unit * kTf32Unit;
  if (types.compute == Compute::kF32x3) {
    return kF32x3Unit + (1 + kF32x3Excess) * lost(kF32x3Steps, 2 * UnitRoundoff(DType::kF32));
  }
  return SizeOf(types.a) > 1 ? 0 : lost(kFp8AccumulatorSteps, kFp8AccumulatorUnit);
}

}  // namespace

DType AccumulatorType(Compute compute) {
  if (compute == Compute::kS32) return DType::kS32;
  return compute == Compute::kF16 ? DType::kF16 : ScalarType(compute);
}

double ProductsOfOne(const Types& types) { return types.compute == Compute::kF32x3 ? 3 : 1; }

double UnderflowUnit(DType type) {
  switch (type) {
    case DType::kF64:
      return std::numeric_limits<double>::min();
    case DType::kF32:
    case DType::kBF16:
      return std::numeric_limits<float>::min();
    case DType::kF16:
      return 0x1p-24;
    case DType::kE4M3:
      return 0x1p-9;
    case DType::kE5M2:
      return 0x1p-16;
    case DType::kS8:
    case DType::kS32:
      return 0;
  }
  return 0;
}

double LargestFinite(DType type) {
  switch (type) {
    case DType::kF64:
      return std::numeric_limits<double>::max();
    case DType::kF32:
      return std::numeric_limits<float>::max();
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kE4M3:
      return 448;
    case DType::kE5M2:
      return 57344;
    case DType::kS8:
      return 127;
    case DType::kS32:
      return 2147483647;
  }
  return 0;
}

double WorstCase(const Types& types, int64_t k) {
  if (OfIntegers(types)) return IntegerUnit(types);
  const double steps = static_cast<double>(k) + kExtraSteps;
  const double u = AccumulationUnit(types);
  const double operands = MultiplicationBound(types, k);
  const double sum = Truncates(types) ? std::expm1(steps * u) : steps * u;
  return operands + (1 + operands) * sum;
}

double DrawnCase(const Types& types, int64_t k) {
  if (OfIntegers(types)) return kLambda * IntegerUnit(types);
  const double steps = static_cast<double>(k) + kExtraSteps;
  const double roundings = Truncates(types) ? steps : std::min(steps, kLambda * std::sqrt(steps));
  const double operands = MultiplicationBound(types, k);
  const double sum = std::expm1(roundings * AccumulationUnit(types));
  return kLambda * (operands + (1 + operands) * sum);
}

Expected BoundElement(const Problem& problem, const ElementTerms& terms, Elements elements) {
  const DType d = problem.types.d;
  if (d == DType::kS32 && OfIntegers(problem.types)) return {IntegerElement(problem, terms), 0};
  const DType scale = ScalarType(problem.types.compute);
  const Bounded sum = SumOfProducts(problem, terms, elements);
  Bounded x = Scale(problem, sum, terms.c);
  // Partial sums reach up to the sum of the magnitudes.
  const double excess = problem.types.compute == Compute::kF32x3 ? kF32x3Excess : 0;
  const double partial = OfIntegers(problem.types)
                             ? sum.reach()
                             : terms.abs_dot * (1 + AccumulationUnit(problem.types) + excess);
  const double addends =
      std::abs(problem.alpha) * partial + std::abs(problem.beta * terms.c) + std::abs(terms.bias);
  const DType accumulator =
      OfIntegers(problem.types) ? scale : AccumulatorType(problem.types.compute);
  const bool overflow = partial > LargestFinite(accumulator) || addends > LargestFinite(scale);
  x.value += terms.bias;
  x.error += UnitRoundoff(scale) * x.reach();
  // Also where others are infinite or NaN.
  if (HasBlockScales(problem) && ScaledReach(problem, terms) > LargestFinite(accumulator)) {
    return {x.value, kInfinity};
  }
  // NaN or infinite because operands are.
  if (!std::isfinite(x.value)) return {ApplyActivation(problem, x).value, UnderflowUnit(d)};
  x = ApplyActivation(problem, x);
  if (elements == Elements::kExact && problem.activation != Activation::kGelu) {
    return {RoundedElement(x.value, d), 0};
  }
  Round(d, x);
  if (std::isfinite(x.value) && (overflow || !(x.error < kInfinity))) return {x.value, kInfinity};
  return {x.value, x.error};
}

}  // namespace gemm
