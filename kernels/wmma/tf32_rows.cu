// The WMMA pipelines over f32 operands, rounded to TF32.
#include "kernels/core/families.h"
#include "kernels/wmma/rows.cuh"
#include "kernels/wmma/tables.h"

namespace gemm {
namespace wmma {

namespace {
constexpr auto kRows = MakeWmmaRows<Tf32Table>();
}  // namespace

}  // namespace wmma

absl::Span<const Kernel> WmmaTf32Rows() { return wmma::kRows; }

}  // namespace gemm
