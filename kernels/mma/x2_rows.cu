// The mma.sync pipelines with k-tiles of 32, fragments read ahead and collective stores.
#include "kernels/core/families.h"
#include "kernels/mma/rows.cuh"
#include "kernels/mma/variants.h"

namespace gemm {
namespace mma {

struct X2Table {
  static constexpr Config kConfigs[] = {
      X2Dsmem(2),
      X2Dsmem(2).F32(),
      X2Dsmem(2).Tn(),
      X2Dsmem(2).Tn().F32(),
      X2Dsmem(3),
      X2Dsmem(3).F32(),
      X2Dsmem(3).Tn(),
      X2Dsmem(3).Tn().F32(),
      X2Dsmem(4),
      X2Dsmem(4).F32(),
      X2Dsmem(4).Tn(),
      X2Dsmem(4).Tn().F32(),
      X2DsmemReduced(2),
      X2DsmemReduced(2).F32(),
      X2DsmemReduced(2).Tn(),
      X2DsmemReduced(2).Tn().F32(),
      X2DsmemReduced(3),
      X2DsmemReduced(3).F32(),
      X2DsmemReduced(3).Tn(),
      X2DsmemReduced(3).Tn().F32(),
      X2DsmemReduced(4),
      X2DsmemReduced(4).F32(),
      X2DsmemReduced(4).Tn(),
      X2DsmemReduced(4).Tn().F32(),
      X2DsmemXor(2),
      X2DsmemXor(2).F32(),
      X2DsmemXor(2).Tn(),
      X2DsmemXor(2).Tn().F32(),
      X2DsmemXor(3),
      X2DsmemXor(3).F32(),
      X2DsmemXor(3).Tn(),
      X2DsmemXor(3).Tn().F32(),
      X2DsmemXor(4),
      X2DsmemXor(4).F32(),
      X2DsmemXor(4).Tn(),
      X2DsmemXor(4).Tn().F32(),
  };
};

}  // namespace mma

absl::Span<const Kernel> MmaX2Rows() {
  static constexpr auto kRows = mma::MakeTableRows<mma::X2Table>();
  return kRows;
}

}  // namespace gemm
