// The configuration of an mma.sync variant, and what follows from it.
#pragma once

#include "gemm/dtype.h"
#include "kernels/mma/shared_panel.h"

namespace gemm::mma {

// When a warp reads the fragments of a step over k.
enum class FragmentBuffers {
  kSingle,    // just before it multiplies them
  kDouble,    // one step ahead, into a second set of registers
  kRotating,  // one step ahead, each into the registers whose last use is over
};

enum class Store {
  kPairs,       // two neighbours by each thread
  kCollective,  // eight neighbours, gathered from four threads through shuffles
};

struct Config {
  static constexpr int kMmaM = 16, kMmaN = 8, kMmaK = 16;

  int warps_m = 2, warps_n = 4;
  int tiles_m = 4, tiles_n = 4;  // mma tiles of a warp
  int tile_k = 16;               // of a stage
  int stages = 1;                // of the cp.async pipeline; 1: copies through registers
  PanelLayout layout = PanelLayout::kPadded;
  bool dynamic_shared = false;
  bool trans_b = false;  // B is stored n x k
  FragmentBuffers buffers = FragmentBuffers::kSingle;
  bool alternate = false;  // every other row of mma tiles runs right to left
  Store store = Store::kPairs;
  // The grid has as many blocks as run at a time, and each takes one tile after the
  // other. Otherwise each block takes one tile.
  bool persistent = false;
  DType accumulate = DType::kF16;
  int blocks_per_sm = 3;  // that registers must suffice for

  constexpr int warps() const { return warps_m * warps_n; }
  constexpr int threads() const { return warps() * 32; }
  constexpr int warp_m() const { return tiles_m * kMmaM; }
  constexpr int warp_n() const { return tiles_n * kMmaN; }
  constexpr int tile_m() const { return warps_m * warp_m(); }
  constexpr int tile_n() const { return warps_n * warp_n(); }
  constexpr int steps() const { return tile_k / kMmaK; }

  // A stage holds a panel of A and behind it one of B.
  constexpr SharedPanel panel_a() const {
    return {.rows = tile_m(), .units = tile_k / kUnitElements, .layout = layout};
  }
  constexpr SharedPanel panel_b() const {
    return trans_b
               ? SharedPanel{.rows = tile_n(), .units = tile_k / kUnitElements, .layout = layout}
               : SharedPanel{.rows = tile_k, .units = tile_n() / kUnitElements, .layout = layout};
  }
  constexpr int stage_bytes() const { return panel_a().bytes() + panel_b().bytes(); }
  constexpr int shared_bytes() const { return stages * stage_bytes(); }

  constexpr BlockOrder order_a() const { return BlockOrder::kUnitMajor; }
  constexpr BlockOrder order_b() const {
    return trans_b ? BlockOrder::kRowMajor : BlockOrder::kUnitMajor;
  }

  // The same for B stored n x k.
  constexpr Config Tn() const {
    Config config = *this;
    config.trans_b = true;
    return config;
  }
  // The same with f32 accumulators. They take 64 registers, four fifths of what three
  // blocks an SM would leave a thread.
  constexpr Config F32() const {
    Config config = *this;
    config.accumulate = DType::kF32;
    config.blocks_per_sm = 2;
    config.persistent = false;
    return config;
  }
};

}  // namespace gemm::mma
