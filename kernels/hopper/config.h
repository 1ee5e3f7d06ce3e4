// The configuration of a Hopper variant, and what follows from it.
#pragma once

#include "gemm/dtype.h"

namespace gemm {

// Which warpgroups multiply a tile of D.
enum class HopperSchedule {
  kCooperative,  // all of them, each some rows
  kPingPong,     // one; the other one multiplies while this one stores
};

struct HopperConfig {
  DType operand = DType::kF16;  // of A and B
  int tile_m = 128, tile_n = 256;
  int stages = 4;
  int consumers = 2;  // warpgroups that multiply
  HopperSchedule schedule = HopperSchedule::kCooperative;
  // The blocks of a cluster are neighbours along m, which load a tile of B together, or along
  // n, which load a tile of A together.
  int cluster_m = 1;
  int cluster_n = 1;
  // So many of them share a tile of D: each multiplies a part of k.
  int split = 1;
  // D leaves through so many boxes of 64 rows a warpgroup.
  int boxes = 2;

  static constexpr int kPanelBytes = 128;  // of k in a stage
  constexpr int element_bytes() const { return static_cast<int>(SizeOf(operand)); }
  constexpr int tile_k() const { return kPanelBytes / element_bytes(); }
  // Blocks that load a tile together.
  constexpr int sharers() const { return cluster_m * cluster_n; }
  constexpr int cluster() const { return sharers() * split; }
  constexpr bool ping_pong() const { return schedule == HopperSchedule::kPingPong; }

  // Warpgroup 0 loads.
  constexpr int threads() const { return (1 + consumers) * 128; }
  // Of the tile, in blocks of 64 rows, for each warpgroup that multiplies it.
  constexpr int blocks_m() const { return tile_m / 64 / (ping_pong() ? 1 : consumers); }

  constexpr int tile_a_bytes() const { return tile_m * kPanelBytes; }
  constexpr int tile_b_bytes() const { return tile_n * kPanelBytes; }
  constexpr int stage_bytes() const { return tile_a_bytes() + tile_b_bytes(); }
  static constexpr int kBoxRows = 64;
  static constexpr int kBoxBytes = kBoxRows * kPanelBytes;
  constexpr int store_bytes() const { return consumers * boxes * kBoxBytes; }
  constexpr int barrier_bytes() const { return (2 * stages + 2) * 8; }
  constexpr int shared_bytes() const {
    return stages * stage_bytes() + store_bytes() + barrier_bytes();
  }

  constexpr bool valid() const {
    const bool one_direction = cluster_m == 1 || cluster_n == 1;
    const bool whole_rows = tile_m % (64 * (ping_pong() ? 1 : consumers)) == 0;
    const bool whole_boxes = tile_m / 64 % cluster_n == 0 && tile_n / 64 % cluster_m == 0;
    // A block of a split stores whole boxes, and the stages hold its accumulators.
    const bool whole_parts = split == 1 || (tile_n / split % 64 == 0 && !ping_pong() &&
                                            tile_m * tile_n * 4 <= stages * stage_bytes());
    return one_direction && cluster() <= 8 && whole_rows && whole_boxes && whole_parts &&
           tile_m <= 256 && tile_n <= 256 && shared_bytes() <= kMostSharedBytes;
  }
  static constexpr int kMostSharedBytes = 227 * 1024;  // of a block, on sm_90
};

}  // namespace gemm
