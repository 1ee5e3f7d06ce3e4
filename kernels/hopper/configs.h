// The configurations that the Hopper family serves.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/hopper/config.h"

namespace gemm {

inline constexpr HopperSchedule kPingPong = HopperSchedule::kPingPong;

// For f16 and bf16. What each is for: docs/kernels.md.
inline constexpr HopperConfig kHopper16BitConfigs[] = {
    {.tile_m = 128, .tile_n = 256, .stages = 4},
    {.tile_m = 128, .tile_n = 256, .stages = 3, .boxes = 4},
    {.tile_m = 128, .tile_n = 256, .stages = 3, .cluster_m = 2, .boxes = 4},
    {.tile_m = 256, .tile_n = 128, .stages = 4},
    {.tile_m = 128, .tile_n = 192, .stages = 4},
    {.tile_m = 128, .tile_n = 128, .stages = 6},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .split = 2},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong, .cluster_m = 2},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong, .cluster_n = 2},
    {.tile_m = 64, .tile_n = 256, .stages = 4, .schedule = kPingPong},
    {.tile_m = 64, .tile_n = 128, .stages = 8, .consumers = 1},
    {.tile_m = 64, .tile_n = 64, .stages = 8, .consumers = 1},
};

constexpr auto Hopper16BitConfigs(DType operand) {
  std::array<HopperConfig, std::size(kHopper16BitConfigs)> configs;
  for (size_t i = 0; i < configs.size(); ++i) {
    configs[i] = kHopper16BitConfigs[i];
    configs[i].operand = operand;
  }
  return configs;
}

}  // namespace gemm
