// The configuration of a grouped variant, and what follows from it.
#pragma once

#include <array>
#include <cstddef>

#include "gemm/dtype.h"
#include "kernels/grouped/shared_tile.h"

namespace gemm {

struct GroupedConfig {
  DType operand = DType::kF16;  // of A and B
  int tile_m = 128, tile_n = 128, tile_k = 32;
  int stages = 4;
  int warps = 4;
  int blocks_per_sm = 1;  // that registers must suffice for

  constexpr int threads() const { return warps * 32; }
  constexpr int element_bytes() const { return static_cast<int>(SizeOf(operand)); }
  constexpr bool fp8() const { return element_bytes() == 1; }
  // Tensor cores read 8-bit operands along k only: B is stored n x k.
  constexpr bool trans_b() const { return fp8(); }
  // wgmma is an instruction of four warps.
  constexpr bool fills_warpgroups() const { return warps % 4 == 0; }

  // A pipeline stage holds a tile of A and behind it one of B, as they are stored.
  constexpr SharedTile tile_a() const {
    return {.rows = tile_m, .row_bytes = tile_k * element_bytes()};
  }
  constexpr SharedTile tile_b() const {
    return trans_b() ? SharedTile{.rows = tile_n, .row_bytes = tile_k * element_bytes()}
                     : SharedTile{.rows = tile_k, .row_bytes = tile_n * element_bytes()};
  }
  constexpr int stage_bytes() const { return tile_a().bytes() + tile_b().bytes(); }
  constexpr int shared_bytes() const { return stages * stage_bytes(); }

  // mma.sync: a warp's part of the tile is as square as possible. Its longer side is
  // along the tile's longer side.
  constexpr int warp_m() const {
    const int area = tile_m * tile_n / warps;
    return area >= 64 * 64 || (area > 32 * 32 && tile_m >= tile_n) ? 64 : 32;
  }
  // The blocks that registers suffice for with mma.sync, whose fragments take registers
  // beside the accumulators.
  constexpr int mma_blocks_per_sm() const {
    constexpr int kRegistersOfSm = 65536, kBesideAccumulators = 64;
    const int accumulators = tile_m * tile_n / threads();
    const int most = kRegistersOfSm / (threads() * (accumulators + kBesideAccumulators));
    return most < blocks_per_sm ? most : blocks_per_sm;
  }
  constexpr int warp_n() const { return tile_m * tile_n / warps / warp_m(); }
  constexpr int warps_n() const { return tile_n / warp_n(); }
};

template <size_t kCount>
constexpr std::array<GroupedConfig, kCount> WithOperand(DType operand,
                                                        std::array<GroupedConfig, kCount> configs) {
  for (GroupedConfig& config : configs) config.operand = operand;
  return configs;
}

// For f16 and bf16. The last three are from the fp8 list.
inline constexpr std::array<GroupedConfig, 11> kGrouped16BitConfigs = {{
    {.tile_m = 128, .tile_n = 256, .tile_k = 64, .stages = 3, .warps = 8, .blocks_per_sm = 1},
    {.tile_m = 64, .tile_n = 256, .tile_k = 32, .stages = 4, .warps = 4, .blocks_per_sm = 2},
    {.tile_m = 128, .tile_n = 128, .tile_k = 32, .stages = 4, .warps = 4, .blocks_per_sm = 3},
    {.tile_m = 128, .tile_n = 64, .tile_k = 32, .stages = 4, .warps = 4, .blocks_per_sm = 4},
    {.tile_m = 64, .tile_n = 128, .tile_k = 32, .stages = 4, .warps = 4, .blocks_per_sm = 4},
    {.tile_m = 128, .tile_n = 32, .tile_k = 32, .stages = 4, .warps = 4, .blocks_per_sm = 5},
    {.tile_m = 64, .tile_n = 32, .tile_k = 32, .stages = 5, .warps = 2, .blocks_per_sm = 1},
    {.tile_m = 32, .tile_n = 64, .tile_k = 32, .stages = 5, .warps = 2, .blocks_per_sm = 1},
    {.tile_m = 128, .tile_n = 64, .tile_k = 64, .stages = 4, .warps = 4, .blocks_per_sm = 2},
    {.tile_m = 64, .tile_n = 128, .tile_k = 64, .stages = 4, .warps = 4, .blocks_per_sm = 2},
    {.tile_m = 128, .tile_n = 32, .tile_k = 64, .stages = 4, .warps = 4, .blocks_per_sm = 3},
}};
constexpr auto Grouped16BitConfigs(DType operand) {
  return WithOperand(operand, kGrouped16BitConfigs);
}

// For e4m3 and e5m2.
inline constexpr std::array<GroupedConfig, 8> kGrouped8BitConfigs = {{
    {.tile_m = 128, .tile_n = 256, .tile_k = 128, .stages = 3, .warps = 8, .blocks_per_sm = 1},
    {.tile_m = 256, .tile_n = 128, .tile_k = 128, .stages = 3, .warps = 8, .blocks_per_sm = 1},
    {.tile_m = 256, .tile_n = 64, .tile_k = 128, .stages = 4, .warps = 4, .blocks_per_sm = 1},
    {.tile_m = 64, .tile_n = 256, .tile_k = 128, .stages = 4, .warps = 4, .blocks_per_sm = 1},
    {.tile_m = 128, .tile_n = 128, .tile_k = 128, .stages = 4, .warps = 4, .blocks_per_sm = 1},
    {.tile_m = 128, .tile_n = 64, .tile_k = 64, .stages = 4, .warps = 4, .blocks_per_sm = 2},
    {.tile_m = 64, .tile_n = 128, .tile_k = 64, .stages = 4, .warps = 4, .blocks_per_sm = 2},
    {.tile_m = 128, .tile_n = 32, .tile_k = 64, .stages = 4, .warps = 4, .blocks_per_sm = 4},
}};
constexpr auto Grouped8BitConfigs(DType operand) {
  return WithOperand(operand, kGrouped8BitConfigs);
}

}  // namespace gemm
