// The slices of all tiles of a block, one after the other.
#pragma once

#include <cstdint>

#include "kernels/mma/arguments.cuh"
#include "kernels/mma/config.h"
#include "kernels/mma/panel_copy.cuh"

namespace gemm::mma {

// The slices of a tile. The one that k ends in comes first if it is a partial one.
struct SliceCount {
  int count;
  int whole;
  int tail;  // elements of k in the partial slice; 0: none

  __device__ SliceCount(int64_t k, int slice_k)
      : count(static_cast<int>((k + slice_k - 1) / slice_k)),
        whole(static_cast<int>(k / slice_k)),
        tail(static_cast<int>(k % slice_k)) {}
};

// Copies slice after slice into shared memory. Where blocks are `persistent` it
// goes on to the next tile where one ends, so that a tile's first slices are
// under way while the accumulators of the tile before are stored.
template <class Variant>
class SliceStream {
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
  __device__ explicit SliceStream(const Arguments& args)
      : args_(args), slices_(args.k, kConfig.slice_k), a_(args.a), b_(args.b) {
    MoveTo(blockIdx.x);
  }

  // Slices of a tile.
  __device__ int count() const { return slices_.count; }

  // Copies the first slice of a tile to the stage that begins at `stage`.
  __device__ void CopyFirst(uint32_t stage) {
    if (slices_.tail != 0) {
      a_.CopyTail(stage, slices_.whole, slices_.tail);
      b_.CopyTail(stage + kOffsetB, slices_.whole, slices_.tail);
    } else {
      a_.Copy(stage);
      b_.Copy(stage + kOffsetB);
    }
    End();
  }

  // Copies the next slice; nothing after the last one of the last tile.
  __device__ void CopyNext(uint32_t stage) {
    if constexpr (kConfig.persistent) {
      if (tile_ >= args_.tiles()) return;
      if (slice_ == 0) return CopyFirst(stage);
    } else {
      if (slice_ == slices_.count) return;
    }
    a_.Copy(stage);
    b_.Copy(stage + kOffsetB);
    End();
  }

 private:
  // Of a slice.
  __device__ void End() {
    ++slice_;
    if (kConfig.persistent && slice_ == slices_.count) MoveTo(tile_ + gridDim.x);
  }

  __device__ void MoveTo(unsigned tile) {
    tile_ = tile;
    slice_ = 0;
    if (kConfig.persistent && tile >= args_.tiles()) return;
    const TileOrigin origin = OriginOf<Variant>(tile, args_);
    a_.MoveTo(args_.a, origin.i, args_.m);
    b_.MoveTo(args_.b, origin.j, args_.n);
  }

  const Arguments& args_;
  SliceCount slices_;
  PanelCopy<ShapeA> a_;
  PanelCopy<ShapeB> b_;
  unsigned tile_;
  int slice_;
};

}  // namespace gemm::mma
