#include "client/ctl/checks/exact_sums.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "gemm/reference.h"
#include "gemm/scalars.h"

namespace gemmd::ctl {
namespace {

// The largest integer up to which all integers are exact in the accumulator. fp8 of tensor cores
// keeps 13 bits behind the first. TF32 keeps 10 bits of each operand; f32x3 leaves out the product
// of the bits behind those.
double LargestSum(const gemm::Types& types) {
  if (types.compute == gemm::Compute::kF16) return 0x1p11;
  if (types.compute == gemm::Compute::kF64) return 0x1p53;
  if (types.compute == gemm::Compute::kS32) return 0x1p31 - 1;
  return gemm::SizeOf(types.a) == 1 ? 0x1p14 : 0x1p24;
}

// For a result of s32, the epilogue adds integers alone.
double LargestEpilogueSum(const gemm::Types& types) {
  if (types.d == gemm::DType::kS32) return LargestSum(types);
  return types.compute == gemm::Compute::kF64 ? 0x1p53 : 0x1p24;
}

double LargestOperand(const gemm::Types& types) {
  const bool in_tf32 =
      types.compute == gemm::Compute::kTF32 || types.compute == gemm::Compute::kF32x3;
  return in_tf32 ? 0x1p11 : LargestSum(types);
}

// A matrix as its memory is.
struct Stored {
  const void* data;
  int64_t rows, cols, ld;
  gemm::DType type;
};

struct Magnitudes {
  double largest = 0;
  double largest_row = 0;  // sum
  double largest_col = 0;
};

// Empty where an element is no integer.
std::optional<Magnitudes> OfIntegers(const Stored& matrix) {
  Magnitudes found;
  std::vector<double> cols(static_cast<size_t>(matrix.cols));
  for (int64_t i = 0; i < matrix.rows; ++i) {
    double row = 0;
    for (int64_t j = 0; j < matrix.cols; ++j) {
      const double x = std::abs(gemm::LoadElement(matrix.data, i * matrix.ld + j, matrix.type));
      if (!std::isfinite(x) || x != std::floor(x)) return std::nullopt;
      found.largest = std::max(found.largest, x);
      row += x;
      cols[static_cast<size_t>(j)] += x;
    }
    found.largest_row = std::max(found.largest_row, row);
  }
  for (const double col : cols) found.largest_col = std::max(found.largest_col, col);
  return found;
}

// Far from where a multiple of an integer would be subnormal.
bool IsPowerOfTwo(double x) {
  int exponent = 0;
  return std::abs(std::frexp(x, &exponent)) == 0.5 && std::abs(exponent) < 64;
}

bool IsExactActivation(const gemm::Problem& p) {
  switch (p.activation) {
    case gemm::Activation::kNone:
    case gemm::Activation::kRelu:
      return true;
    case gemm::Activation::kLeakyRelu:
      return IsPowerOfTwo(p.leaky_slope);
    case gemm::Activation::kGelu:
      return false;
  }
  return false;
}

// A bound of the elements of |A| |B|. Empty if an operand is not of integers that the types hold.
std::optional<double> LargestProductSum(const gemm::Problem& p, const gemm::Operands& o) {
  const auto a = OfIntegers({o.a, p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k, o.lda, p.types.a});
  if (!a.has_value() || a->largest > LargestOperand(p.types)) return std::nullopt;
  const auto b = OfIntegers({o.b, p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n, o.ldb, p.types.b});
  if (!b.has_value() || b->largest > LargestOperand(p.types)) return std::nullopt;
  const double a_line = p.trans_a ? a->largest_col : a->largest_row;
  const double b_line = p.trans_b ? b->largest_row : b->largest_col;
  return std::min(a_line * b->largest, a->largest * b_line);
}

}  // namespace

bool SumsAreExact(const gemm::Problem& given, const gemm::Operands& host) {
  const gemm::Problem p = gemm::RoundScalars(given);
  if (!IsPowerOfTwo(p.alpha) || !IsExactActivation(p) || gemm::HasBlockScales(p)) return false;
  const std::optional<double> product = LargestProductSum(p, host);
  if (!product.has_value() || *product > LargestSum(p.types)) return false;
  // Every term of the epilogue is a multiple of `unit`.
  double unit = std::min(1.0, std::abs(p.alpha));
  double sum = std::abs(p.alpha) * *product;
  if (p.beta != 0) {
    const auto c = OfIntegers({host.c, p.m, p.n, host.ldc, p.types.d});
    if (!IsPowerOfTwo(p.beta) || !c.has_value()) return false;
    unit = std::min(unit, std::abs(p.beta));
    sum += std::abs(p.beta) * c->largest;
  }
  if (p.bias != gemm::BiasAxis::kNone) {
    const int64_t length = p.bias == gemm::BiasAxis::kColumns ? p.n : p.m;
    const auto bias = OfIntegers({host.bias, 1, length, length, p.types.d});
    if (!bias.has_value()) return false;
    sum += bias->largest;
  }
  return sum <= LargestEpilogueSum(p.types) * unit && sum <= gemm::LargestFinite(p.types.d);
}

}  // namespace gemmd::ctl
