// The grouped kernel: a thread block computes one tile of D. Blocks take the tiles in
// L2-grouped order, so that blocks which run together share operands in the L2.
// Operands come through a pipeline of cp.async stages. (This is not the grouped GEMM
// of many problems in one launch.)
#pragma once

#include <cstdint>

#include "kernels/core/tile_order.h"
#include "kernels/grouped/config.h"
#include "kernels/grouped/mma_product.cuh"
#include "kernels/grouped/operand_tiles.cuh"
#include "kernels/grouped/store.cuh"
#include "kernels/grouped/wgmma_product.cuh"
#include "kernels/ptx/grid.cuh"

namespace gemm {

// Calls visitor.template operator()<kD>() for the run-time output type: f32, or the
// operands' type, or for fp8 operands one of the 16-bit types.
template <DType kOperand, class Visitor>
__device__ __forceinline__ void VisitGroupedOutput(DType type, const Visitor& visitor) {
  constexpr bool kFp8 = SizeOf(kOperand) == 1;
  if (type == DType::kF32) {
    visitor.template operator()<DType::kF32>();
  } else if (kFp8 && type == DType::kBF16) {
    visitor.template operator()<DType::kBF16>();
  } else {
    visitor.template operator()<kFp8 ? DType::kF16 : kOperand>();
  }
}

#if GEMM_HAS_WGMMA
template <class Variant>
using GroupedProduct = std::conditional_t<Variant::kConfig.fills_warpgroups(),
                                          WgmmaProduct<Variant>, MmaProduct<Variant>>;
#else
template <class Variant>
using GroupedProduct = MmaProduct<Variant>;
#endif

// `Variant` has a constexpr GroupedConfig kConfig. The epilogue's element type is
// `output`, not the type that the argument is declared with.
template <class Variant>
__global__ __launch_bounds__(
    Variant::kConfig.threads(),
    GroupedProduct<Variant>::kBlocksPerSm) void GroupedKernel(const GroupedArguments arguments,
                                                              const Epilogue<DType::kF32> epilogue,
                                                              DType output) {
  constexpr GroupedConfig kConfig = Variant::kConfig;
  using Product = GroupedProduct<Variant>;
  constexpr int kAccumulatorTileBytes = AccumulatorTile{Product::kRows, Product::kCols}.bytes();
  static_assert(kConfig.warps * kAccumulatorTileBytes <= kConfig.shared_bytes());
  // The swizzles of wgmma count from such a boundary.
  extern __shared__ __align__(1024) std::byte shared[];

  const int thread = static_cast<int>(threadIdx.x);
  const TileOfD tile(GroupedTile(static_cast<int>(blockIdx.x), arguments.tiles_m, arguments.tiles_n,
                                 arguments.group),
                     kConfig.tile_m, kConfig.tile_n, arguments.m, arguments.n);
  OperandTiles<Variant> operands(arguments, tile, thread);
  Product product(thread);
  product.Run(operands, ptx::SharedAddress(shared), arguments.k);
  __syncthreads();  // the stages are free

  // Computed again: a value that lives through the loop over k would cost a register.
  const auto same_thread = static_cast<unsigned>(ptx::ThreadAnew()), lane = same_thread % 32;
  std::byte* const scratch = shared + same_thread / 32 * kAccumulatorTileBytes;
  if (epilogue.OnlyScales() && output != DType::kF32 && tile.n % 8 == 0) {
    VisitGroupedOutput<kConfig.operand>(output, [&]<DType kD>() {
      if constexpr (kD != DType::kF32) {
        StoreRounded(product, scratch, Retyped<kD>(epilogue), tile, lane);
      }
    });
    return;
  }
  WriteAccumulatorTile(product, scratch, lane);
  __syncwarp();
  VisitGroupedOutput<kConfig.operand>(output, [&]<DType kD>() {
    StoreAccumulatorTile(product, scratch, Retyped<kD>(epilogue), tile, lane);
  });
}

}  // namespace gemm
