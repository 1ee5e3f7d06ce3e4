// The loading warpgroup: one of its threads keeps the stages filled by TMA.
#pragma once

#include <cstdint>

#include "kernels/core/tile_order.h"
#include "kernels/hopper/arguments.h"
#include "kernels/hopper/pipeline.cuh"
#include "kernels/ptx/tma.cuh"

namespace gemm {

// How tiles of one operand are loaded: `kLines` rows of op(A), or columns of op(B), by one
// panel of k. Blocks of a cluster may share a tile: each loads a part of it for all.
template <bool kAlongK, int kLines, int kSharers, int kTileK>
struct HopperLoad {
  // If lines are stored along k, a part is one box. Otherwise boxes have 64 lines.
  static constexpr int kBoxLines = kAlongK ? kLines / kSharers : 64;
  static constexpr int kBoxes = kLines / kBoxLines / kSharers;  // of a part
  static constexpr int kBoxBytes = kBoxLines * HopperConfig::kPanelBytes;
  static_assert(!kAlongK || kBoxLines <= 256);

  __device__ static void Start(const CUtensorMap* map, uint32_t shared, uint32_t barrier, int line,
                               int k_tile, int product, int sharer, int part) {
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) {
      const int index = kSharers > 1 ? sharer * kBoxes + box : box;
      const int first = line + index * kBoxLines, k = k_tile * kTileK;
      const uint32_t to = shared + index * kBoxBytes;
      const int column = kAlongK ? k : first, row = kAlongK ? first : k;
      if constexpr (kSharers > 1) {
        ptx::MulticastBox(to, map, column, row, product, barrier,
                          static_cast<uint16_t>(((1 << kSharers) - 1) << part * kSharers));
      } else {
        ptx::LoadBox(to, map, column, row, product, barrier);
      }
    }
  }
};

template <class Variant, bool kTransA, bool kTransB>
struct HopperLoads {
  static constexpr HopperConfig kConfig = Variant::kConfig;
  using A = HopperLoad<!kTransA, kConfig.tile_m, kConfig.cluster_n, kConfig.tile_k()>;
  using B = HopperLoad<kTransB, kConfig.tile_n, kConfig.cluster_m, kConfig.tile_k()>;
};

// Called by one thread of the block.
template <class Tiles, bool kTransA, bool kTransB>
__device__ __forceinline__ void Produce(const HopperMaps& maps,
                                        const HopperShared<typename Tiles::Variant>& shared,
                                        Tiles tiles) {
  using Variant = typename Tiles::Variant;
  constexpr HopperConfig kConfig = Variant::kConfig;
  using Loads = HopperLoads<Variant, kTransA, kTransB>;
  HopperPlace<kConfig.stages> place;
  for (; tiles.more(); tiles.Next()) {
    const TileCoord tile = tiles.tile();
    const int matrix_a = tiles.matrix_a(), matrix_b = tiles.matrix_b();
    for (int k = tiles.first_k(), end = tiles.end_k(); k < end; ++k) {
      // All stages are free at first: the phase before the first one has ended.
      ptx::WaitForPhase(shared.free(place.stage), place.parity ^ 1);
      const uint32_t full = shared.full(place.stage);
      ptx::ArriveExpecting(full, kConfig.stage_bytes());
      Loads::A::Start(&maps.a, shared.tile_a(place.stage), full, tiles.line_a(tile), k, matrix_a,
                      tiles.sharer(), tiles.part());
#pragma unroll
      for (int x = 0; x < kConfig.matrices_b(); ++x) {
        Loads::B::Start(&maps.b, shared.tile_b(place.stage) + x * kConfig.tile_b_bytes(), full,
                        tiles.line_b(tile), k, matrix_b * kConfig.matrices_b() + x, tiles.sharer(),
                        tiles.part());
      }
      place.Next();
    }
  }
}

}  // namespace gemm
