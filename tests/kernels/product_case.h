// Random products in guarded host memory, for the tests of every kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gemm/catalogue.h"
#include "gemm/generate.h"
#include "gemm/kernel.h"
#include "gemm/problem.h"
#include "gemm/reference.h"

namespace gemm::testing {

// A row-major matrix between two guard bands, with padded rows. Bytes that are
// no element hold kGuard.
class GuardedMatrix {
 public:
  static constexpr std::byte kGuard{0xCD};
  static constexpr size_t kBand = 256;

  GuardedMatrix(int64_t rows, int64_t cols, DType type, int64_t extra_pitch_bytes);

  std::vector<std::byte>& bytes() { return bytes_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  // The first element is kBand bytes into the buffer.
  void* data() { return bytes_.data() + kBand; }
  const void* data() const { return bytes_.data() + kBand; }
  int64_t ld() const { return pitch_ / static_cast<int64_t>(SizeOf(type_)); }
  DType type() const { return type_; }

  // For the generator, with elements at `data`, on whichever device.
  GeneratorTarget TargetAt(void* data) const { return {data, type_, rows_, cols_, pitch_, false}; }

  // Integers are drawn as such shares of 2^7, or of 2^30 for s32.
  void FillUniform(uint64_t seed, double low, double high);
  void FillIntegers(uint64_t seed, int64_t largest);
  void FillNormal(uint64_t seed);
  // NaN in every floating type.
  void Poison();
  // As Poison, in the bytes beside the elements.
  void PoisonGuards();
  void Set(int64_t i, int64_t j, double value) { StoreElement(data(), i * ld() + j, type_, value); }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  // The rows of another matrix, of the same width, type and pitch, from `first` on.
  void CopyRows(const GuardedMatrix& from, int64_t first);
  // Whether this matrix is, byte for byte, the rows of `all` from `first` on.
  bool IsRowsOf(const GuardedMatrix& all, int64_t first) const;
  bool GuardIntact() const;
  double At(int64_t i, int64_t j) const { return LoadElement(data(), i * ld() + j, type_); }

 private:
  std::byte* Row(int64_t i) { return bytes_.data() + kBand + i * pitch_; }

  int64_t rows_;
  int64_t cols_;
  DType type_;
  int64_t pitch_;
  std::vector<std::byte> bytes_;
};

// The matrices that all products of a batch or a group share.
struct SharedMatrices {
  bool a = false, b = false, c = false, bias = false;
};

// The properties that vary from product to product.
struct ProductCase {
  Problem problem;
  bool c_is_d = false;
  int64_t extra_pitch_bytes = 0;
  uint64_t seed = 1;
  // kDrawn: uniform in [-1, 1), of integers in their whole range. kExact: -1, 0 and 1, in C and the
  // bias up to 4.
  Elements elements = Elements::kDrawn;
  SharedMatrices shared;
  // How block scales are stored: a row for each block of k, or one for each line of op(A), op(B).
  bool scales_by_block = false;
  // The memory of problem.extents of a group.
  std::shared_ptr<const std::vector<int64_t>> extents;
};
std::ostream& operator<<(std::ostream& out, const ProductCase& product);

// A case with everything but shape and types drawn from `random`. alpha is never 0, as there would
// be no product to look at. SpecialCases covers an alpha of 0.
ProductCase RandomCase(const Types& types, int64_t m, int64_t n, int64_t k,
                       std::mt19937_64& random);

// The same with exact elements and factors. k is at most kLargestExactK.
ProductCase ExactCase(const Types& types, int64_t m, int64_t n, int64_t k, std::mt19937_64& random);

// Sums of this many products of -1, 0 and 1 stay below 2048 by eight standard deviations. f16 has
// all integers up to there.
inline constexpr int64_t kLargestExactK = 140'000;

// The case with block scales of this kind, stored in one way or the other.
ProductCase WithBlockScales(ProductCase product, ScaleBlocks of_a, ScaleBlocks of_b,
                            std::mt19937_64& random);

// The case with an epilogue that its types have: an s32 D takes factors of 0 and 1, and no
// activation but the relu.
ProductCase Fitted(ProductCase product);

// The largest element that is drawn for A and B: 1, or less if sums of s8 would be beyond an f16 D.
constexpr double ReachOf(const Types& types) {
  return types.a == DType::kS8 && types.d == DType::kF16 ? 0x1p-4 : 1;
}

// The operands of a fitted case, and D. Those of a batch or a group lie one after the other. D is
// poisoned, or has C's elements if C is D.
struct ProductData {
  explicit ProductData(const ProductCase& given);

  ProductCase product;
  GuardedMatrix a, b, c, bias, d;
  GuardedMatrix scales_a, scales_b;  // 1 x 1 where there are none

  // Null where the problem does not read them.
  bool reads_c() const { return product.problem.beta != 0; }
  bool reads_bias() const { return product.problem.bias != BiasAxis::kNone; }
  // On the host, with C as it was before the product.
  Operands ForReference() const;
};

// Runs the case's product on D of `data`.
using Runner = std::function<absl::Status(const Kernel&, ProductData&)>;

absl::Status RunOnHost(const Kernel& kernel, ProductData& data);

// Runs `kernel` on the case and checks what every kernel must hold: OK, D within the bound, no byte
// touched but D's elements. Returns the first fault, or an empty string.
std::string CheckProduct(const Kernel& kernel, const ProductCase& product, const Runner& run,
                         int64_t max_samples);

}  // namespace gemm::testing
