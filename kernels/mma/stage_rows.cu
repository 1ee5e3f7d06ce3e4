// The mma.sync variants with one stage, and the pipelines in static shared memory.
#include "kernels/core/families.h"
#include "kernels/mma/rows.cuh"
#include "kernels/mma/tables.h"

namespace gemm {

absl::Span<const Kernel> MmaStageRows() {
  static constexpr auto kRows = mma::MakeTableRows<mma::StageTable>();
  return kRows;
}

}  // namespace gemm
