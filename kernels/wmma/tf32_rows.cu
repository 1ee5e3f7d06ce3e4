// The WMMA pipelines over f32 operands, rounded to TF32.
#include "kernels/core/families.h"
#include "kernels/wmma/rows.cuh"
#include "kernels/wmma/variants.h"

namespace gemm {
namespace wmma {

struct Tf32Table {
  static constexpr Config kConfigs[] = {
      Tf32(2),
      Tf32(3),
  };
};

namespace {
constexpr auto kRows = MakeWmmaRows<Tf32Table>();
}  // namespace

}  // namespace wmma

absl::Span<const Kernel> WmmaTf32Rows() { return wmma::kRows; }

}  // namespace gemm
