// The configuration of a WMMA variant, and what follows from it.
#pragma once

#include "gemm/dtype.h"
#include "kernels/wmma/panel.h"

namespace gemm::wmma {

// How k-tiles are copied from global to shared memory.
enum class Copies { kThroughRegisters, kAsync };

// When a warp reads the fragments of a step over k.
enum class FragmentReads {
  kInTurn,        // just before it multiplies them
  kAheadInKTile,  // one step ahead into a second set of registers, within a k-tile
  kAhead,         // the same, across k-tiles too
  kRotating,      // one step ahead, each into the registers whose last use is over
};

// The order in which blocks take the tiles of D.
enum class Order { kRowByRow, kBanded };

struct Config {
  DType type = DType::kF16;        // of A, B and D; f32 is rounded to TF32
  DType accumulate = DType::kF16;  // f16 or f32
  int wmma_m = 16, wmma_n = 16, wmma_k = 16;
  int warps_m = 4, warps_n = 2;
  int tiles_m = 2, tiles_n = 4;  // fragments of a warp
  int tile_k = 16;               // of a stage
  int stages = 1;                // k-tiles in shared memory; 1: filled and read in turn
  Copies copies = Copies::kAsync;
  bool padded = false;  // rows of operands, against bank conflicts
  FragmentReads reads = FragmentReads::kInTurn;
  bool dynamic_shared = false;
  Order order = Order::kRowByRow;
  int blocks_per_sm = 3;  // that registers must suffice for

  // The same with f32 accumulators.
  constexpr Config F32(int blocks) const {
    Config config = *this;
    config.accumulate = DType::kF32;
    config.blocks_per_sm = blocks;
    return config;
  }

  constexpr int warps() const { return warps_m * warps_n; }
  constexpr int threads() const { return warps() * 32; }
  constexpr int warp_m() const { return tiles_m * wmma_m; }
  constexpr int warp_n() const { return tiles_n * wmma_n; }
  constexpr int tile_m() const { return warps_m * warp_m(); }
  constexpr int tile_n() const { return warps_n * warp_n(); }
  constexpr int steps() const { return tile_k / wmma_k; }
  constexpr int element_bytes() const { return static_cast<int>(SizeOf(type)); }

  // Padding against bank conflicts. f16 fragments are read in rows of one unit, eight at a time.
  // Rows an odd number of units apart put them at eight places of the line of banks. f32 fragments
  // are read by elements: four columns of A in eight rows, or eight columns of B in four. Pitches
  // of 12 and 8 words beyond whole lines do the same.
  constexpr Panel panel_a() const {
    return {.rows = tile_m(),
            .columns = tile_k,
            .element_bytes = element_bytes(),
            .fragment_columns = wmma_k,
            .padding_bytes = padded ? kUnitBytes : 0};
  }
  // Follows panel_a in each stage.
  constexpr Panel panel_b() const {
    const int padding = type == DType::kF32 ? 2 * kUnitBytes : kUnitBytes;
    return {.rows = tile_k,
            .columns = tile_n(),
            .element_bytes = element_bytes(),
            .fragment_columns = wmma_n,
            .padding_bytes = padded ? padding : 0};
  }
  constexpr int stage_bytes() const { return panel_a().bytes() + panel_b().bytes(); }

  // One row of a warp's accumulator fragments, through which they go to D. The padding
  // keeps stores of pairs free of bank conflicts.
  constexpr Panel strip() const {
    const int bytes = static_cast<int>(SizeOf(accumulate));
    return {.rows = wmma_m,
            .columns = warp_n(),
            .element_bytes = bytes,
            .fragment_columns = wmma_n,
            .padding_bytes = 8 * bytes};
  }

  // The stages. After the last k-tile the strips of all warps take their place.
  constexpr int shared_bytes() const {
    const int ring = stages * stage_bytes();
    const int strips = warps() * strip().bytes();
    return ring > strips ? ring : strips;
  }
};

}  // namespace gemm::wmma
