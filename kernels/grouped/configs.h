// The configurations that the grouped family serves, by the size of an element.
#pragma once

#include <array>

#include "kernels/grouped/config.h"

namespace gemm {

// For f16 and bf16. The last three are of the fp8 list, and serve here, too.
constexpr std::array<GroupedConfig, 11> Grouped16BitConfigs(DType operand) {
  return {{
      // operand, tile_m, tile_n, tile_k, stages, warps, blocks_per_sm
      {operand, 128, 256, 64, 3, 8, 1},
      {operand, 64, 256, 32, 4, 4, 2},
      {operand, 128, 128, 32, 4, 4, 3},
      {operand, 128, 64, 32, 4, 4, 4},
      {operand, 64, 128, 32, 4, 4, 4},
      {operand, 128, 32, 32, 4, 4, 5},
      {operand, 64, 32, 32, 5, 2, 1},
      {operand, 32, 64, 32, 5, 2, 1},
      {operand, 128, 64, 64, 4, 4, 2},
      {operand, 64, 128, 64, 4, 4, 2},
      {operand, 128, 32, 64, 4, 4, 3},
  }};
}

// For e4m3 and e5m2.
constexpr std::array<GroupedConfig, 8> Grouped8BitConfigs(DType operand) {
  return {{
      // operand, tile_m, tile_n, tile_k, stages, warps, blocks_per_sm
      {operand, 128, 256, 128, 3, 8, 1},
      {operand, 256, 128, 128, 3, 8, 1},
      {operand, 256, 64, 128, 4, 4, 1},
      {operand, 64, 256, 128, 4, 4, 1},
      {operand, 128, 128, 128, 4, 4, 1},
      {operand, 128, 64, 64, 4, 4, 2},
      {operand, 64, 128, 64, 4, 4, 2},
      {operand, 128, 32, 64, 4, 4, 4},
  }};
}

}  // namespace gemm
