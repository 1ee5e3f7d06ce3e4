#include "gemm/problem.h"

namespace gemm {
namespace {

const void* Moved(const void* data, int64_t elements, DType type) {
  if (data == nullptr) return nullptr;
  return static_cast<const char*>(data) + elements * static_cast<int64_t>(SizeOf(type));
}

void* Moved(void* data, int64_t elements, DType type) {
  return const_cast<void*>(Moved(static_cast<const void*>(data), elements, type));
}

}  // namespace

OneProduct ProductOfGroup(const Problem& problem, const Operands& operands, int64_t index,
                          int64_t first) {
  OneProduct one{problem, operands};
  Problem& p = one.problem;
  Operands& o = one.operands;
  const int64_t extent = problem.extents[static_cast<size_t>(index)];
  p.grouped = GroupedBy::kNothing;
  p.extents = {};
  if (problem.grouped == GroupedBy::kM) {
    p.m = extent;
    o.a = Moved(operands.a, first * operands.lda, p.types.a);
    o.b = Moved(operands.b, index * operands.stride_b, p.types.b);
    o.c = Moved(operands.c, first * operands.ldc, p.types.d);
    o.d = Moved(operands.d, first * operands.ldd, p.types.d);
    const int64_t bias = p.bias == BiasAxis::kRows ? first : index * operands.stride_bias;
    o.bias = Moved(operands.bias, bias, p.types.d);
  } else {
    p.k = extent;
    o.a = Moved(operands.a, first * operands.lda, p.types.a);
    o.b = Moved(operands.b, first * operands.ldb, p.types.b);
    o.c = Moved(operands.c, index * operands.stride_c, p.types.d);
    o.d = Moved(operands.d, index * operands.stride_d, p.types.d);
    o.bias = Moved(operands.bias, index * operands.stride_bias, p.types.d);
  }
  o.stride_a = o.stride_b = o.stride_c = o.stride_bias = o.stride_d = 0;
  return one;
}

}  // namespace gemm
