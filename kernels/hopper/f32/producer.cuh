// The thread that loads: it keeps the stages filled by TMA.
#pragma once

#include <cstdint>

#include "kernels/core/tile_order.h"
#include "kernels/hopper/arguments.h"
#include "kernels/hopper/f32/stages.cuh"
#include "kernels/hopper/pipeline.cuh"
#include "kernels/ptx/tma.cuh"

namespace gemm {

// A block's part of a tile of B, or all of it, from column `line` and step `k` on: one box
// (maps.h). Blocks that share the tile each load some columns that lie along k, or some steps of k,
// for all.
template <class Variant, bool kTransB>
__device__ __forceinline__ void LoadF32TileOfB(const CUtensorMap* map, uint32_t tile, int line,
                                               int k, int product, uint32_t full, int sharer) {
  constexpr HopperF32Config kConfig = Variant::kConfig;
  if constexpr (kConfig.sharers() > 1) {
    constexpr int kPart = (kTransB ? kConfig.tile_n : kConfig.tile_k()) / kConfig.sharers();
    constexpr int kPartBytes = kConfig.tile_n * kBoxRowBytes / kConfig.sharers();
    const int first = sharer * kPart;
    ptx::MulticastBox(tile + sharer * kPartBytes, map, kTransB ? k : line,
                      kTransB ? line + first : k + first, product, full,
                      static_cast<uint16_t>((1 << kConfig.sharers()) - 1));
  } else {
    ptx::LoadBox(tile, map, kTransB ? k : line, kTransB ? line : k, product, full);
  }
}

// By one thread of the block. A tile of A is one box.
template <class Tiles, bool kTransA, bool kTransB>
__device__ __forceinline__ void ProduceF32(const HopperMaps& maps,
                                           const HopperF32Stages<typename Tiles::Variant>& stages,
                                           Tiles tiles) {
  using Variant = typename Tiles::Variant;
  constexpr HopperF32Config kConfig = Variant::kConfig;
  HopperPlace<kConfig.stages> place;
  for (; tiles.more(); tiles.Next()) {
    const TileCoord tile = tiles.tile();
    const int line_a = tiles.line_a(tile), line_b = tiles.line_b(tile);
    const int matrix_a = tiles.matrix_a(), matrix_b = tiles.matrix_b();
    for (int k_tile = tiles.first_k(), end = tiles.end_k(); k_tile < end; ++k_tile) {
      const int k = k_tile * HopperF32Config::kTileK;
      // All stages are free at first: the phase before the first one has ended.
      ptx::WaitForPhase(stages.free(place.stage), place.parity ^ 1);
      const uint32_t full = stages.full(place.stage);
      ptx::ArriveExpecting(full, kConfig.stage_bytes());
      ptx::LoadBox(stages.tile_a(place.stage), &maps.a, kTransA ? line_a : k, kTransA ? k : line_a,
                   matrix_a, full);
      LoadF32TileOfB<Variant, kTransB>(&maps.b, stages.tile_b(place.stage), line_b, k, matrix_b,
                                       full, tiles.sharer());
      place.Next();
    }
  }
}

}  // namespace gemm
