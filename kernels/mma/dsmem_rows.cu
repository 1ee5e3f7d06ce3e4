// The mma.sync pipelines in dynamic shared memory.
#include "kernels/core/families.h"
#include "kernels/mma/rows.cuh"
#include "kernels/mma/tables.h"

namespace gemm {

absl::Span<const Kernel> MmaDsmemRows() {
  static constexpr auto kRows = mma::MakeTableRows<mma::DsmemTable>();
  return kRows;
}

}  // namespace gemm
