// The thread-tiled SGEMM rows.
#include <iterator>

#include "kernels/core/families.h"
#include "kernels/core/rows.h"
#include "kernels/simt/tiled_launch.cuh"

namespace gemm {
namespace tiled_sgemm {

template <size_t kIndex>
struct Variant {
  static constexpr TiledLayout kLayout{kTiledSgemm[kIndex].config};
  using Element = DeviceElement<kLayout.config.type>::Type;
};

}  // namespace tiled_sgemm

namespace {

constexpr auto kRows = MakeRows<std::size(kTiledSgemm)>(
    [](auto index) { return TiledKernelRow<tiled_sgemm::Variant<index>>(kTiledSgemm[index]); });

}  // namespace

absl::Span<const Kernel> SimtSgemmRows() { return kRows; }

}  // namespace gemm
