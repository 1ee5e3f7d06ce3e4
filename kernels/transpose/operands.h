// Transposes operands into scratch memory, for kernels whose loads read one
// layout alone.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "gemm/kernel.h"
#include "gemm/problem.h"

namespace gemm {

// The layout that a kernel's loads read.
struct LoadLayout {
  bool trans_a = false;
  bool trans_b = false;
};

// Scratch bytes for the operands of `problem` that have another layout. In a batch, enough for
// operands that are not shared.
size_t TransposeScratchBytes(const Problem& problem, const LoadLayout& layout);

// The same as a row's `workspace_bytes`.
template <bool kTransA, bool kTransB>
size_t TransposeScratchBytesFor(const Problem& problem) {
  return TransposeScratchBytes(problem, {kTransA, kTransB});
}

// The product with operands in the layout that the kernel's loads read.
struct TransposedProduct {
  Problem problem;
  Operands operands;
};

// Enqueues the transposes that are needed, into the launch's workspace, and then
// records `launch.transposed`. Enqueues nothing where none is needed. INTERNAL where the
// workspace is too small for them.
absl::StatusOr<TransposedProduct> TransposeOperands(const Launch& launch, const LoadLayout& layout);

}  // namespace gemm
