// The WMMA pipelines with 256x128 and 256x256 tiles.
#include "kernels/core/families.h"
#include "kernels/wmma/rows.cuh"
#include "kernels/wmma/tables.h"

namespace gemm {
namespace wmma {

namespace {
constexpr auto kRows = MakeWmmaRows<LargeTileTable>();
}  // namespace

}  // namespace wmma

absl::Span<const Kernel> WmmaLargeTileRows() { return wmma::kRows; }

}  // namespace gemm
