// The mma.sync pipelines with k-tiles of 32, fragments read ahead and collective stores.
#include "kernels/core/families.h"
#include "kernels/mma/rows.cuh"
#include "kernels/mma/tables.h"

namespace gemm {

absl::Span<const Kernel> MmaX2Rows() {
  static constexpr auto kRows = mma::MakeTableRows<mma::X2Table>();
  return kRows;
}

}  // namespace gemm
