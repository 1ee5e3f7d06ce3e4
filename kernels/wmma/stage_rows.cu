// The WMMA pipelines with 128x128 tiles.
#include "kernels/core/families.h"
#include "kernels/wmma/rows.cuh"
#include "kernels/wmma/tables.h"

namespace gemm {
namespace wmma {

namespace {
constexpr auto kRows = MakeWmmaRows<StageTable>();
}  // namespace

}  // namespace wmma

absl::Span<const Kernel> WmmaStageRows() { return wmma::kRows; }

}  // namespace gemm
