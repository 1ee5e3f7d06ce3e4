// Operands that a kernel's own loads do not take as they lie are transposed into
// scratch memory first.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "gemm/kernel.h"
#include "gemm/problem.h"

namespace gemm {

// The transposes that a kernel's own loads read.
struct LoadLayout {
  bool trans_a = false;
  bool trans_b = false;
};

// Scratch bytes for the operands of `problem` that lie otherwise.
size_t StagedBytes(const Problem& problem, const LoadLayout& layout);

// The same as a row's `workspace_bytes`.
template <bool kTransA, bool kTransB>
size_t StagedBytesFor(const Problem& problem) {
  return StagedBytes(problem, {kTransA, kTransB});
}

// The product as the kernel's loads take it.
struct Staged {
  Problem problem;
  Operands operands;
};

// Enqueues the transposes that are needed into the launch's workspace and then
// records `launch.staged`; where none is needed nothing is enqueued.
absl::StatusOr<Staged> StageOperands(const Launch& launch, const LoadLayout& layout);

}  // namespace gemm
