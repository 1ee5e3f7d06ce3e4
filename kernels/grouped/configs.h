// The configurations that the grouped family serves, by the size of an element.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/grouped/config.h"

namespace gemm {

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
