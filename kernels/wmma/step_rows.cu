// The WMMA steps from one fragment a warp to the double-buffered kernels.
#include "kernels/core/families.h"
#include "kernels/wmma/rows.cuh"
#include "kernels/wmma/tables.h"

namespace gemm {
namespace wmma {

namespace {
constexpr auto kRows = MakeWmmaRows<StepTable>();
}  // namespace

}  // namespace wmma

absl::Span<const Kernel> WmmaStepRows() { return wmma::kRows; }

}  // namespace gemm
