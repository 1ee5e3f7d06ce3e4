// The WMMA pipelines with 256x128 and 256x256 tiles.
#include "kernels/core/families.h"
#include "kernels/wmma/rows.cuh"
#include "kernels/wmma/variants.h"

namespace gemm {
namespace wmma {

struct LargeTileTable {
  static constexpr Config kConfigs[] = {
      Tile256x128(2),    Tile256x128F32(2), Tile256x128(3), Tile256x128F32(3), Tile256x128(4),
      Tile256x128F32(4), Tile256x256(2),    Tile256x256(3), Tile256x256(4),
  };
};

namespace {
constexpr auto kRows = MakeWmmaRows<LargeTileTable>();
}  // namespace

}  // namespace wmma

absl::Span<const Kernel> WmmaLargeTileRows() { return wmma::kRows; }

}  // namespace gemm
