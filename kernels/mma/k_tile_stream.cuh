// The k-tiles of a block's tiles, one after the other.
#pragma once

#include <cstdint>

#include "kernels/mma/arguments.cuh"
#include "kernels/mma/config.h"
#include "kernels/mma/panel_copy.cuh"

namespace gemm::mma {

// The number of k-tiles of a tile of D. A partial one, at the end of k, comes first.
struct KTileCount {
  int count;
  int whole;
  int tail;  // elements of k in the partial k-tile; 0: none

  __device__ KTileCount(int64_t k, int tile_k)
      : count(static_cast<int>((k + tile_k - 1) / tile_k)),
        whole(static_cast<int>(k / tile_k)),
        tail(static_cast<int>(k % tile_k)) {}
};

// Copies k-tile after k-tile into shared memory. In `persistent` blocks it continues
// with the next tile of D, whose first k-tiles are then under way while the accumulators
// of the tile before are stored.
template <class Variant>
class KTileStream {
  static constexpr Config kConfig = Variant::kConfig;
  struct ShapeA {
    static constexpr SharedPanel kPanel = kConfig.panel_a();
    static constexpr bool kRowsAreK = false;
    static constexpr int kThreads = kConfig.threads();
    static constexpr bool kAsync = kConfig.stages > 1;
  };
  struct ShapeB : ShapeA {
    static constexpr SharedPanel kPanel = kConfig.panel_b();
    static constexpr bool kRowsAreK = !kConfig.trans_b;
  };
  static constexpr uint32_t kOffsetB = kConfig.panel_a().bytes();

 public:
  __device__ explicit KTileStream(const Arguments& args)
      : args_(args), k_tiles_(args.k, kConfig.tile_k), a_(args.a), b_(args.b) {
    MoveTo(blockIdx.x);
  }

  // K-tiles of a tile of D.
  __device__ int count() const { return k_tiles_.count; }

  // Copies the first k-tile of a tile to the stage that begins at `stage`.
  __device__ void CopyFirst(uint32_t stage) {
    if (k_tiles_.tail != 0) {
      a_.CopyTail(stage, k_tiles_.whole, k_tiles_.tail);
      b_.CopyTail(stage + kOffsetB, k_tiles_.whole, k_tiles_.tail);
    } else {
      a_.Copy(stage);
      b_.Copy(stage + kOffsetB);
    }
    End();
  }

  // Copies the next k-tile. Does nothing after the last one of the last tile.
  __device__ void CopyNext(uint32_t stage) {
    if constexpr (kConfig.persistent) {
      if (tile_ >= args_.tiles()) return;
      if (k_tile_ == 0) return CopyFirst(stage);
    } else {
      if (k_tile_ == k_tiles_.count) return;
    }
    a_.Copy(stage);
    b_.Copy(stage + kOffsetB);
    End();
  }

 private:
  // Ends a k-tile.
  __device__ void End() {
    ++k_tile_;
    if (kConfig.persistent && k_tile_ == k_tiles_.count) MoveTo(tile_ + gridDim.x);
  }

  __device__ void MoveTo(unsigned tile) {
    tile_ = tile;
    k_tile_ = 0;
    if (kConfig.persistent && tile >= args_.tiles()) return;
    const TileOrigin origin = OriginOf<Variant>(tile, args_);
    a_.MoveTo(args_.a, origin.i, args_.m);
    b_.MoveTo(args_.b, origin.j, args_.n);
  }

  const Arguments& args_;
  KTileCount k_tiles_;
  PanelCopy<ShapeA> a_;
  PanelCopy<ShapeB> b_;
  unsigned tile_;
  int k_tile_;
};

}  // namespace gemm::mma
