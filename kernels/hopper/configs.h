// The configurations that the Hopper family serves.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/hopper/config.h"

namespace gemm {

inline constexpr HopperSchedule kPingPong = HopperSchedule::kPingPong;

// For f16 and bf16. docs/kernels.md says what each is for.
inline constexpr HopperConfig kHopper16BitConfigs[] = {
    {.tile_m = 128, .tile_n = 256, .stages = 4, .groups = true},
    {.tile_m = 128, .tile_n = 256, .stages = 3, .boxes = 4, .groups = true},
    {.tile_m = 128, .tile_n = 256, .stages = 3, .cluster_m = 2, .boxes = 4},
    {.tile_m = 256, .tile_n = 128, .stages = 4},
    {.tile_m = 128, .tile_n = 192, .stages = 4, .groups = true},
    {.tile_m = 128, .tile_n = 128, .stages = 6},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .split = 2},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong, .groups = true},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong, .cluster_m = 2},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong, .cluster_n = 2},
    {.tile_m = 64, .tile_n = 256, .stages = 4, .schedule = kPingPong, .groups = true},
    {.tile_m = 64, .tile_n = 128, .stages = 8, .consumers = 1, .groups = true},
    {.tile_m = 64, .tile_n = 128, .stages = 8, .consumers = 1, .cluster_m = 2},
    {.tile_m = 64, .tile_n = 64, .stages = 8, .consumers = 1},
    // Tiles of D of 160 rows.
    {.tile_m = 128,
     .tile_n = 160,
     .stages = 5,
     .schedule = kPingPong,
     .cluster_m = 2,
     .boxes = 4,
     .swap = true},
    {.tile_m = 128,
     .tile_n = 160,
     .stages = 5,
     .schedule = kPingPong,
     .cluster_n = 2,
     .boxes = 4,
     .swap = true},
    // Tiles of D of few rows.
    {.tile_m = 64, .tile_n = 16, .stages = 10, .consumers = 1, .swap = true, .groups = true},
    {.tile_m = 64, .tile_n = 16, .stages = 10, .consumers = 1, .split = 2, .swap = true},
    {.tile_m = 64, .tile_n = 16, .stages = 16, .consumers = 1, .split = 2, .swap = true},
    {.tile_m = 64, .tile_n = 16, .stages = 10, .consumers = 1, .split = 4, .swap = true},
    {.tile_m = 64, .tile_n = 16, .stages = 4, .consumers = 1, .swap = true},
    {.tile_m = 128, .tile_n = 16, .stages = 6, .swap = true},
    {.tile_m = 64, .tile_n = 32, .stages = 8, .consumers = 1, .swap = true, .groups = true},
    {.tile_m = 64, .tile_n = 32, .stages = 8, .consumers = 1, .split = 2, .swap = true},
    {.tile_m = 64, .tile_n = 32, .stages = 14, .consumers = 1, .split = 2, .swap = true},
    {.tile_m = 64, .tile_n = 32, .stages = 5, .consumers = 1, .swap = true},
    {.tile_m = 64, .tile_n = 64, .stages = 6, .consumers = 1, .swap = true, .blocks_per_sm = 2},
    {.tile_m = 64, .tile_n = 64, .stages = 8, .consumers = 1, .split = 2, .swap = true},
    {.tile_m = 128, .tile_n = 64, .stages = 6, .swap = true, .groups = true},
    {.tile_m = 64, .tile_n = 128, .stages = 8, .consumers = 1, .swap = true},
    {.tile_m = 64, .tile_n = 128, .stages = 8, .consumers = 1, .split = 2, .swap = true},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .swap = true, .groups = true},
};

// For f16 accumulated in f16: accumulators take half the registers.
inline constexpr HopperConfig kHopperF16Acc16Configs[] = {
    {.tile_m = 128, .tile_n = 256, .stages = 4, .schedule = kPingPong},
    {.tile_m = 256, .tile_n = 128, .stages = 4, .schedule = kPingPong},
    {.tile_m = 128, .tile_n = 192, .stages = 4, .schedule = kPingPong},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong, .cluster_n = 2},
    {.tile_m = 64, .tile_n = 128, .stages = 8, .consumers = 1},
    {.tile_m = 64, .tile_n = 64, .stages = 8, .consumers = 1},
};

// For TF32.
inline constexpr HopperConfig kHopperTf32Configs[] = {
    {.tile_m = 128, .tile_n = 256, .stages = 4},
    {.tile_m = 256, .tile_n = 128, .stages = 4},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .split = 2},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong, .cluster_m = 2},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong, .cluster_n = 2},
    {.tile_m = 64, .tile_n = 128, .stages = 8, .consumers = 1},
    {.tile_m = 64, .tile_n = 64, .stages = 8, .consumers = 1},
};

// For f32 as sums of two TF32 numbers. Warpgroups cooperate, as one multiplies while another adds
// or splits rows of A. The rows for a small D add up in two levels, because the cuBLAS kernels in
// f32 that they are compared with share k among blocks.
inline constexpr HopperConfig kHopperF32x3Configs[] = {
    {.tile_m = 128, .tile_n = 128, .stages = 4},
    {.tile_m = 128, .tile_n = 128, .stages = 4, .split = 2, .two_levels = true},
    {.tile_m = 128, .tile_n = 64, .stages = 6, .two_levels = true},
    {.tile_m = 64, .tile_n = 64, .stages = 8, .consumers = 1, .two_levels = true},
};

// For fp8. Warpgroups cooperate, as one multiplies while another adds a part. The largest tile's
// kernel for groups would spill registers.
inline constexpr HopperConfig kHopper8BitConfigs[] = {
    {.tile_m = 128, .tile_n = 256, .stages = 4},
    {.tile_m = 128, .tile_n = 256, .stages = 4, .cluster_m = 2},
    {.tile_m = 192, .tile_n = 128, .stages = 4, .consumers = 3},
    {.tile_m = 192, .tile_n = 128, .stages = 4, .consumers = 3, .cluster_m = 2},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .groups = true},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .split = 2},
    {.tile_m = 64, .tile_n = 128, .stages = 8, .consumers = 1},
    {.tile_m = 64, .tile_n = 64, .stages = 8, .consumers = 1},
};

// For s8. No sums are promoted, so warpgroups take turns as with 16-bit operands.
inline constexpr HopperConfig kHopperS8Configs[] = {
    {.tile_m = 128, .tile_n = 256, .stages = 4},
    {.tile_m = 128, .tile_n = 256, .stages = 3, .cluster_m = 2, .boxes = 4},
    {.tile_m = 256, .tile_n = 128, .stages = 4},
    {.tile_m = 128, .tile_n = 192, .stages = 4, .groups = true},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .split = 2},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong, .groups = true},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong, .cluster_m = 2},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .schedule = kPingPong, .cluster_n = 2},
    {.tile_m = 64, .tile_n = 256, .stages = 4, .schedule = kPingPong},
    {.tile_m = 64, .tile_n = 128, .stages = 8, .consumers = 1},
    {.tile_m = 64, .tile_n = 64, .stages = 8, .consumers = 1},
    // Tiles of D of few rows.
    {.tile_m = 64, .tile_n = 16, .stages = 10, .consumers = 1, .swap = true, .groups = true},
    {.tile_m = 64, .tile_n = 16, .stages = 16, .consumers = 1, .split = 2, .swap = true},
    {.tile_m = 64, .tile_n = 32, .stages = 8, .consumers = 1, .swap = true},
    {.tile_m = 64, .tile_n = 32, .stages = 14, .consumers = 1, .split = 2, .swap = true},
    {.tile_m = 128, .tile_n = 64, .stages = 6, .swap = true, .groups = true},
};

template <size_t kCount>
constexpr auto WithTypes(const HopperConfig (&table)[kCount], DType operand,
                         DType accumulator = DType::kF32) {
  std::array<HopperConfig, kCount> configs;
  for (size_t i = 0; i < kCount; ++i) {
    configs[i] = table[i];
    configs[i].operand = operand;
    configs[i].accumulator = accumulator;
  }
  return configs;
}

constexpr auto Hopper16BitConfigs(DType operand) { return WithTypes(kHopper16BitConfigs, operand); }
constexpr auto Hopper8BitConfigs(DType operand) { return WithTypes(kHopper8BitConfigs, operand); }
constexpr auto HopperS8Configs() { return WithTypes(kHopperS8Configs, DType::kS8, DType::kS32); }
constexpr auto HopperTf32Configs() { return WithTypes(kHopperTf32Configs, DType::kF32); }
constexpr auto HopperF32x3Configs() {
  auto configs = WithTypes(kHopperF32x3Configs, DType::kF32);
  for (HopperConfig& config : configs) config.f32x3 = true;
  return configs;
}
constexpr auto HopperF16Acc16Configs() {
  return WithTypes(kHopperF16Acc16Configs, DType::kF16, DType::kF16);
}

}  // namespace gemm
