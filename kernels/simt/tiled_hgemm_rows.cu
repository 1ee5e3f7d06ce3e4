// The thread-tiled HGEMM rows.
#include <iterator>

#include "kernels/core/families.h"
#include "kernels/core/rows.h"
#include "kernels/simt/tiled_launch.cuh"

namespace gemm {
namespace tiled_hgemm {

template <size_t kIndex>
struct Variant {
  static constexpr TiledLayout kLayout{kTiledHgemm[kIndex].config};
  using Element = DeviceElement<kLayout.config.type>::Type;
};

}  // namespace tiled_hgemm

namespace {

constexpr auto kRows = MakeRows<std::size(kTiledHgemm)>(
    [](auto index) { return TiledKernelRow<tiled_hgemm::Variant<index>>(kTiledHgemm[index]); });

}  // namespace

absl::Span<const Kernel> SimtHgemmRows() { return kRows; }

}  // namespace gemm
