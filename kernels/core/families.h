// The table of each family, as the catalogue collects them. A new family adds
// its function here and its line in catalogue.cc.
#pragma once

#include "absl/types/span.h"
#include "gemm/kernel.h"

namespace gemm {

absl::Span<const Kernel> HostRows();      // host/rows.cc
absl::Span<const Kernel> SimtRows();      // simt/rows.cu
absl::Span<const Kernel> CublasRows();    // blas/cublas.cc
absl::Span<const Kernel> CublasLtRows();  // blas/cublas_lt.cc

}  // namespace gemm
