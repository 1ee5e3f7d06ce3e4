// A product in the form that kernels take.
//
//   D[m,n] = act(alpha * op(A)[m,k] * op(B)[k,n] + beta * C[m,n] + bias)
//
// All matrices are row-major here. A column-major operand is the row-major operand with
// its transpose flag inverted. A column-major D is the row-major product of the swapped,
// transposed operands. The builder of a Problem does these conversions.
//
// Integers (Compute::kS32). A and B are s8, of the whole range. The accumulators are 32-bit
// integers in two's complement, and wrap. For a k below 2^17 they cannot, as 128 * 128 * 2^17 is
// 2^31. D is one of two kinds:
// - s32, with C and bias in s32. Then alpha is 0 or 1, beta 0 or 1 and the activation none or relu
//   (gemm/scalars.h), and all sums wrap.
// - f32, f16 or bf16. The accumulator is rounded to f32, to nearest, and the epilogue goes on from
//   there as that of other products does.
//
// Block scales, of fp8 operands. Both A and B have them, or neither. Along k a block has 128
// elements, and the last may have fewer. The sum of a block's products is multiplied by the block's
// two scales, that of A and that of B, and added to the other sums:
//
//   (op(A) op(B))_ij = sum over blocks p of scale_a(i, p) scale_b(p, j) sum over k in p of a_ik
//   b_kj
//
// All of it is in f32. The two scales may be multiplied with each other first, or with the sum. The
// result is unspecified for scales so large or small that this order matters.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "gemm/dtype.h"

namespace gemm {

// The types of a product. C and bias have the type of D.
struct Types {
  DType a;
  DType b;
  DType d;
  Compute compute;

  friend constexpr bool operator==(const Types& x, const Types& y) {
    return x.a == y.a && x.b == y.b && x.d == y.d && x.compute == y.compute;
  }
};

enum class Activation : uint8_t { kNone, kRelu, kGelu, kLeakyRelu };

// The bias vector has an element for each column of D (n) or for each row (m).
enum class BiasAxis : uint8_t { kNone, kColumns, kRows };

// The dimension in which the products of a group differ.
enum class GroupedBy : uint8_t { kNothing, kM, kK };

// The block of elements that shares a scale.
enum class ScaleBlocks : uint8_t {
  kNone,   // there are none
  kLines,  // 1 x 128: each row of op(A) (column of op(B)) has scales of its own
  kTiles,  // 128 x 128: 128 rows (columns) share them, the last block's fewer
};
inline constexpr int64_t kScaleBlock = 128;

// The number of blocks of `elements` elements. The last block may be smaller.
constexpr int64_t ScaleBlockCount(int64_t elements) {
  return (elements + kScaleBlock - 1) / kScaleBlock;
}

struct Problem {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  Types types{DType::kF32, DType::kF32, DType::kF32, Compute::kF32};
  bool trans_a = false;  // A is stored k x m
  bool trans_b = false;  // B is stored n x k
  double alpha = 1;      // 0: A and B are not read; see gemm/scalars.h
  double beta = 0;       // 0: C is not read
  BiasAxis bias = BiasAxis::kNone;
  Activation activation = Activation::kNone;
  double leaky_slope = 0.01;
  // Products of this shape, types and scalars in one launch, 1 to kMaxBatch. Each has operands
  // of its own, or shares them: see Operands.
  int64_t batch = 1;
  // A group: products in one launch that differ in one dimension. `extents` has the size of that
  // dimension for each of 1 to kMaxGroup products, at least 0. m (or k) is the sum of the extents,
  // at least 1. A group is no batch. In a group by m, A is not transposed. In a group by k, A is
  // transposed and B is not. So matrices that differ in size are stacked along their rows, and the
  // products share each matrix's leading dimension. `extents` is borrowed until the launch has
  // returned.
  GroupedBy grouped = GroupedBy::kNothing;
  absl::Span<const int64_t> extents;
  // Not in a batch or a group.
  ScaleBlocks scales_a = ScaleBlocks::kNone;
  ScaleBlocks scales_b = ScaleBlocks::kNone;
};

constexpr bool HasBlockScales(const Problem& p) {
  return p.scales_a != ScaleBlocks::kNone || p.scales_b != ScaleBlocks::kNone;
}

// The largest batch: the most blocks of a CUDA grid in its second and third dimensions.
inline constexpr int64_t kMaxBatch = 65535;

// The largest group: this many 32-bit sums of extents fit in the arguments of a CUDA kernel.
inline constexpr int64_t kMaxGroup = 4096;

// The scales of A (of B) in device (or host) memory. A line is a row of op(A) (a column of op(B)),
// or 128 of them. Its scale for block `p` of k is data[line * line_step + p * block_step].
struct ScaleView {
  const float* data = nullptr;
  int64_t line_step = 0;
  int64_t block_step = 0;
};

// The scale of row (column) `outer` and block `block` of k, from host memory.
inline double ScaleOf(ScaleBlocks blocks, const ScaleView& scales, int64_t outer, int64_t block) {
  const int64_t line = blocks == ScaleBlocks::kTiles ? outer / kScaleBlock : outer;
  return scales.data[line * scales.line_step + block * scales.block_step];
}

// Device (or host) memory of a product. Leading dimensions and strides are in elements. Every
// row starts on a 16-byte boundary. C may be D; nothing else overlaps.
//
// In a batch the pointers are those of the first product. A stride leads from one product's matrix
// to the next one's. A stride of 0: all products read the same matrix. D never has it, nor a C that
// is D. A batch of one ignores strides.
//
// In a group the matrices of equal size have such strides: in a group by m, B and a bias of
// columns; by k, C, D and the bias. The stacked ones (by m: A, C, D and a bias of rows; by k: A and
// B) lie one after the other, and have no strides.
struct Operands {
  const void* a = nullptr;
  int64_t lda = 0;
  const void* b = nullptr;
  int64_t ldb = 0;
  const void* c = nullptr;  // null if beta is 0
  int64_t ldc = 0;
  const void* bias = nullptr;  // null if bias is kNone
  void* d = nullptr;
  int64_t ldd = 0;
  int64_t stride_a = 0;
  int64_t stride_b = 0;
  int64_t stride_c = 0;
  int64_t stride_bias = 0;
  int64_t stride_d = 0;
  ScaleView scales_a;
  ScaleView scales_b;
};

// The operands of the products of a batch from index `first` on.
inline Operands OperandsFrom(const Problem& problem, const Operands& operands, int64_t first) {
  const auto moved = [first](const void* data, int64_t stride, DType type) -> const void* {
    if (data == nullptr) return nullptr;
    return static_cast<const char*>(data) + first * stride * static_cast<int64_t>(SizeOf(type));
  };
  Operands from = operands;
  from.a = moved(operands.a, operands.stride_a, problem.types.a);
  from.b = moved(operands.b, operands.stride_b, problem.types.b);
  from.c = moved(operands.c, operands.stride_c, problem.types.d);
  from.bias = moved(operands.bias, operands.stride_bias, problem.types.d);
  from.d = const_cast<void*>(moved(operands.d, operands.stride_d, problem.types.d));
  return from;
}

// Product `index` of a group as a problem of its own, with its operands. `first` is the sum of the
// extents before it. Its extent may be 0.
struct OneProduct {
  Problem problem;
  Operands operands;
};
OneProduct ProductOfGroup(const Problem& problem, const Operands& operands, int64_t index,
                          int64_t first);

// 2 m n k, added up over the products of a batch or a group.
constexpr double Flops(const Problem& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
         static_cast<double>(p.batch);
}

inline constexpr size_t kRowAlignment = 16;

// Bytes from one row to the next for rows of `cols` elements.
constexpr int64_t PitchBytes(int64_t cols, DType type) {
  const int64_t dense = cols * static_cast<int64_t>(SizeOf(type));
  const int64_t align = static_cast<int64_t>(kRowAlignment);
  return (dense + align - 1) / align * align;
}

}  // namespace gemm
