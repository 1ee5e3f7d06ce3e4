// The SGEMM rows over block, k-tile and thread tile.
#include <iterator>

#include "kernels/core/families.h"
#include "kernels/core/rows.h"
#include "kernels/simt/tiled_launch.cuh"

namespace gemm {
namespace tiled_block {

template <size_t kIndex>
struct Variant {
  static constexpr TiledLayout kLayout{kTiledSgemmBlock[kIndex].config};
  using Element = DeviceElement<kLayout.config.type>::Type;
};

}  // namespace tiled_block

namespace {

constexpr auto kRows = MakeRows<std::size(kTiledSgemmBlock)>([](auto index) {
  return TiledKernelRow<tiled_block::Variant<index>>(kTiledSgemmBlock[index]);
});

}  // namespace

absl::Span<const Kernel> SimtBlockRows() { return kRows; }

}  // namespace gemm
