// The cp.async pipelines that multiply f32 operands rounded to TF32.
#include "kernels/core/families.h"
#include "kernels/wmma/rows.cuh"
#include "kernels/wmma/variants.h"

namespace gemm {
namespace wmma {

struct Tf32Table {
  static constexpr Row kRows[] = {
      {"sgemm_wmma_m16n16k8_mma4x2_warp2x4_stage2", "128x128x8 tile, 2 stages", Tf32(2)},
      {"sgemm_wmma_m16n16k8_mma4x2_warp2x4_stage3", "128x128x8 tile, 3 stages", Tf32(3)},
  };
};

namespace {
constexpr auto kRows = MakeWmmaRows<Tf32Table>();
}  // namespace

}  // namespace wmma

absl::Span<const Kernel> WmmaTf32Rows() { return wmma::kRows; }

}  // namespace gemm
