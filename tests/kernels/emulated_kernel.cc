#include "tests/kernels/emulated_kernel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gemm/reference.h"
#include "gemm/scalars.h"
#include "kernels/hopper/f32x3.h"
#include "kernels/numeric/activation.h"
#include "kernels/numeric/wrapping.h"

namespace gemm::testing {
namespace {

constexpr int kF64Bits = 52;  // of the significand, after the first
constexpr uint64_t kExponentMask = 0x7FF0000000000000u;

// `x` without the bits of its significand after the first 1 + `bits`.
double Truncated(double x, int bits) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) & (~uint64_t{0} << (kF64Bits - bits)));
}

// The nearest f16, to even. The number that is added and subtracted has its last digit at f16's.
double ToF16(double x) {
  constexpr double kLeastNormal = 0x1p-14;
  const uint64_t exponent =
      std::bit_cast<uint64_t>(std::max(std::abs(x), kLeastNormal)) & kExponentMask;
  const double magic = 1.5 * 0x1p42 * std::bit_cast<double>(exponent);
  return (x + magic) - magic;
}

enum class Arithmetic { kF64, kF32, kF16, kF32x3, kS32, kTensorCore, kTensorCoreFp8 };

Arithmetic ArithmeticOf(const Types& types) {
  if (types.compute == Compute::kF64) return Arithmetic::kF64;
  if (types.compute == Compute::kF16) return Arithmetic::kF16;
  if (types.compute == Compute::kF32x3) return Arithmetic::kF32x3;
  if (types.compute == Compute::kS32) return Arithmetic::kS32;
  if (SizeOf(types.a) == 1) return Arithmetic::kTensorCoreFp8;
  const bool cuda_cores = types.a == DType::kF32 && types.compute == Compute::kF32;
  return cuda_cores ? Arithmetic::kF32 : Arithmetic::kTensorCore;
}

// The products that f32x3 adds up for a b, in its order.
std::array<double, 3> ThreeProducts(double a, double b) {
  const auto value = [](uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); };
  const HighLow of_a = CutToTf32(Split(std::bit_cast<uint32_t>(static_cast<float>(a))));
  const HighLow of_b = CutToTf32(Split(std::bit_cast<uint32_t>(static_cast<float>(b))));
  return {value(of_a.low) * value(of_b.high), value(of_a.high) * value(of_b.low),
          value(of_a.high) * value(of_b.high)};
}

// The sum of a[p] b[p]. Products of all types but f64 are exact in f64.
double Accumulate(Arithmetic arithmetic, const std::vector<double>& a,
                  const std::vector<double>& b) {
  constexpr size_t kFp8Products = 128, kF32x3Products = 32;
  double sum = 0, chunk = 0;
  for (size_t p = 0; p < a.size(); ++p) {
    switch (arithmetic) {
      case Arithmetic::kF64:
        sum += a[p] * b[p];
        break;
      case Arithmetic::kS32:
        sum = static_cast<double>(WrappingS32(sum + a[p] * b[p]));
        break;
      case Arithmetic::kF32:
        sum = static_cast<float>(sum + a[p] * b[p]);
        break;
      case Arithmetic::kF16:
        sum = ToF16(sum + a[p] * b[p]);
        break;
      case Arithmetic::kF32x3:
        for (const double x : ThreeProducts(a[p], b[p])) chunk = Truncated(chunk + x, 23);
        if ((p + 1) % kF32x3Products != 0 && p + 1 < a.size()) break;
        sum = static_cast<float>(sum + chunk);
        chunk = 0;
        break;
      case Arithmetic::kTensorCore:
        sum = Truncated(sum + a[p] * b[p], 23);
        break;
      case Arithmetic::kTensorCoreFp8:
        chunk = Truncated(chunk + a[p] * b[p], 13);
        if ((p + 1) % kFp8Products != 0 && p + 1 < a.size()) break;
        sum = Truncated(sum + chunk, 23);
        chunk = 0;
        break;
    }
  }
  return sum;
}

// Row `row` of op(A), or column `row` of op(B) where `across`.
std::vector<double> Line(const GuardedMatrix& matrix, int64_t row, int64_t k, bool across,
                         bool to_tf32) {
  std::vector<double> line;
  for (int64_t p = 0; p < k; ++p) {
    const double x = across ? matrix.At(p, row) : matrix.At(row, p);
    line.push_back(to_tf32 ? Truncated(x, 10) : x);
  }
  return line;
}

}  // namespace

void RunEmulated(ProductData& data) {
  const Problem problem = RoundScalars(data.product.problem);
  const Arithmetic arithmetic = ArithmeticOf(problem.types);
  const bool tf32 = problem.types.compute == Compute::kTF32;
  const bool integers = problem.types.d == DType::kS32;
  std::vector<std::vector<double>> columns;
  for (int64_t j = 0; j < problem.n; ++j) {
    columns.push_back(Line(data.b, j, problem.k, !problem.trans_b, tf32));
  }
  for (int64_t i = 0; i < problem.m; ++i) {
    const std::vector<double> row = Line(data.a, i, problem.k, problem.trans_a, tf32);
    for (int64_t j = 0; j < problem.n; ++j) {
      double sum = Accumulate(arithmetic, row, columns[static_cast<size_t>(j)]);
      if (arithmetic == Arithmetic::kS32 && !integers) sum = static_cast<float>(sum);
      double x = problem.alpha * sum;
      if (problem.beta != 0) x += problem.beta * data.c.At(i, j);
      if (problem.bias == BiasAxis::kColumns) x += data.bias.At(0, j);
      if (problem.bias == BiasAxis::kRows) x += data.bias.At(0, i);
      if (integers) x = static_cast<double>(WrappingS32(x));
      data.d.Set(i, j, Activate(problem.activation, problem.leaky_slope, x));
    }
  }
}

}  // namespace gemm::testing
