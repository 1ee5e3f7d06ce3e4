// The configuration of a Hopper variant that multiplies f32 on CUDA cores, and the quantities that
// follow from it.
#pragma once

#include "kernels/hopper/box.h"

namespace gemm {

struct HopperF32Config {
  int tile_m = 128, tile_n = 256;
  int stages = 4;
  // A thread's part of the tile: its accumulators.
  int thread_m = 8, thread_n = 16;
  // The lanes of a warp form a grid: this many along m, the others along n.
  int lanes_m = 4;
  // Blocks that share a tile of D: each multiplies a part of k.
  int split = 1;
  // Blocks share the last tiles (stream.h). The number of tiles decides how they are cut.
  bool stream = false;
  // Blocks on a multiprocessor.
  int blocks_per_sm = 1;

  static constexpr int kTileK = kBoxRowBytes / 4;
  // Elements that a thread reads at once from an operand that lies along k.
  static constexpr int kChunk = 4;
  static constexpr int kChunks = kTileK / kChunk;  // of a stage
  // Chunks in a turn of the loop. One and four were slower.
  static constexpr int kUnrolled = 2;
  constexpr int tile_k() const { return kTileK; }

  constexpr int lanes_n() const { return 32 / lanes_m; }
  constexpr int warp_m() const { return lanes_m * thread_m; }
  constexpr int warp_n() const { return lanes_n() * thread_n; }
  constexpr int warps_n() const { return tile_n / warp_n(); }
  // Threads that multiply come first. The last warpgroup loads. It is a whole one, because
  // registers move between warpgroups.
  constexpr int consumers() const { return tile_m / thread_m * (tile_n / thread_n); }
  constexpr int threads() const { return consumers() + 128; }
  // Whether operands that lie along k are read without a transpose. Each of their lines takes four
  // registers in addition to the accumulators. With 16 columns, too few registers are left to do so
  // for B. For A, the loop loses more time than a transpose takes.
  constexpr bool along_k() const { return thread_n <= 8; }

  // Registers of a loading thread, of any thread at launch, and of a multiplying one.
  static constexpr int kLoadingRegisters = 40;
  constexpr int registers() const { return 65536 / (threads() * blocks_per_sm) / 8 * 8; }
  constexpr int multiplying_registers() const {
    const int all = registers() * threads() - kLoadingRegisters * 128;
    return all / consumers() / 8 * 8;
  }

  // No blocks load a tile together.
  static constexpr int cluster_m = 1, cluster_n = 1;
  static constexpr int sharers() { return 1; }
  constexpr int cluster() const { return split; }

  constexpr int tile_a_bytes() const { return tile_m * kBoxRowBytes; }
  constexpr int stage_bytes() const { return (tile_m + tile_n) * kBoxRowBytes; }
  constexpr int shared_bytes() const { return stages * (stage_bytes() + 2 * 8); }

  // A block that shares tiles has its index before the stages, which begin at a multiple of 1024.
  constexpr int all_bytes() const { return shared_bytes() + (stream ? 1024 : 0); }

  constexpr bool valid() const {
    const bool whole_warps = tile_m % warp_m() == 0 && tile_n % warp_n() == 0;
    const bool whole_quads = thread_m % 4 == 0 && thread_n % 4 == 0;
    // A warp's first line must be the first of a swizzle's eight.
    const bool whole_swizzles = (lanes_m == 4 || lanes_m == 8) && warp_m() % 8 == 0;
    // The stages hold the accumulators. Each block adds up some of their rows.
    const bool whole_parts = split == 1 || (thread_m % split == 0 && split <= 8 &&
                                            tile_m * tile_n * 4 <= stages * stage_bytes());
    const bool whole_streams = !stream || (cluster() == 1 && blocks_per_sm == 1);
    // Each quarter of an SM takes the same number of a block's warps.
    const bool whole_groups = consumers() % 128 == 0;
    return whole_warps && whole_quads && whole_swizzles && whole_parts && whole_streams &&
           whole_groups && tile_m <= 256 && tile_n <= 256 &&
           (all_bytes() + 1024) * blocks_per_sm <= kMultiprocessorBytes &&
           all_bytes() <= kMostSharedBytes;
  }
  static constexpr int kMostSharedBytes = 227 * 1024;      // of a block, on sm_90
  static constexpr int kMultiprocessorBytes = 228 * 1024;  // a block takes 1 KiB more
};

// docs/kernels.md says what each is for.
inline constexpr HopperF32Config kHopperF32Configs[] = {
    {.tile_m = 128, .tile_n = 256, .stages = 4, .lanes_m = 8, .stream = true},
    {.tile_m = 128, .tile_n = 128, .stages = 6, .thread_n = 8, .split = 2},
    {.tile_m = 64, .tile_n = 128, .stages = 4, .thread_n = 8, .blocks_per_sm = 2},
    // For a small D.
    {.tile_m = 64,
     .tile_n = 64,
     .stages = 6,
     .thread_m = 4,
     .thread_n = 8,
     .split = 2,
     .blocks_per_sm = 2},
    {.tile_m = 64, .tile_n = 32, .stages = 4, .thread_m = 4, .thread_n = 4, .blocks_per_sm = 4},
    {.tile_m = 64,
     .tile_n = 32,
     .stages = 4,
     .thread_m = 4,
     .thread_n = 4,
     .split = 2,
     .blocks_per_sm = 4},
    {.tile_m = 32,
     .tile_n = 64,
     .stages = 4,
     .thread_m = 4,
     .thread_n = 4,
     .split = 4,
     .blocks_per_sm = 4},
};

}  // namespace gemm
