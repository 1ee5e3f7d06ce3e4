// The WMMA kernel: a thread block computes one tile of D, k-tile by k-tile, through
// pipeline stages in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/tile_order.h"
#include "kernels/epilogue/epilogue.cuh"
#include "kernels/wmma/k_tile_copy.cuh"
#include "kernels/wmma/store.cuh"
#include "kernels/wmma/warp_product.cuh"

namespace gemm::wmma {

template <DType kType>
struct Arguments {
  Operand a;  // m x k
  Operand b;  // k x n
  Epilogue<kType> epilogue;
  int64_t m;
  int64_t n;
  int64_t k;
  int tiles_m;
  int tiles_n;
  int band;  // tile columns of a band, see BandedTile
};

// Copies the k-tiles of both operands to stages. A partial k-tile, at the end of k, comes
// first, so that the loop over the others needs no bounds.
template <class Variant>
class StageCopy {
  static constexpr Config kConfig = Variant::kConfig;
  struct SideA {
    static constexpr Panel kPanel = kConfig.panel_a();
    static constexpr bool kRowsAreK = false;
    static constexpr int kThreads = kConfig.threads();
    static constexpr Copies kCopies = kConfig.copies;
  };
  struct SideB : SideA {
    static constexpr Panel kPanel = kConfig.panel_b();
    static constexpr bool kRowsAreK = true;
  };

 public:
  __device__ StageCopy(const Arguments<kConfig.type>& args, int64_t first_i, int64_t first_j)
      : a_(args.a, first_i, args.m, static_cast<int>(threadIdx.x)),
        b_(args.b, first_j, args.n, static_cast<int>(threadIdx.x)),
        whole_k_tiles_(static_cast<int>(args.k / kConfig.tile_k)),
        k_left_(static_cast<int>(args.k % kConfig.tile_k)) {}

  __device__ int k_tiles() const { return whole_k_tiles_ + (k_left_ > 0 ? 1 : 0); }

  // Copies the k-tile that comes first.
  __device__ void CopyFirst(std::byte* stage) {
    if (k_left_ == 0) {
      CopyNext(stage);
    } else {
      a_.CopyPartial(stage, whole_k_tiles_, k_left_);
      b_.CopyPartial(stage + SideA::kPanel.bytes(), whole_k_tiles_, k_left_);
    }
  }

  // Copies each of the others in turn.
  __device__ void CopyNext(std::byte* stage) {
    a_.CopyWhole(stage);
    b_.CopyWhole(stage + SideA::kPanel.bytes());
  }

 private:
  KTileCopy<SideA> a_;
  KTileCopy<SideB> b_;
  int whole_k_tiles_;
  int k_left_;  // of the partial k-tile; 0: none
};

// A stage of the ring in shared memory.
template <class Variant>
struct RingStage {
  static constexpr int kStageBytes = Variant::kConfig.stage_bytes();
  std::byte* begin;
  int offset = 0;

  __device__ std::byte* data() const { return begin + offset; }
  __device__ void Advance() {
    offset =
        offset + kStageBytes == Variant::kConfig.stages * kStageBytes ? 0 : offset + kStageBytes;
  }
};

// One stage. All threads fill it, then all read it.
template <class Variant>
__device__ void MultiplyInTurn(WarpProduct<Variant>& product, StageCopy<Variant>& copy,
                               std::byte* stage) {
#pragma unroll 1
  for (int k_tile = 0; k_tile < copy.k_tiles(); ++k_tile) {
    if (k_tile == 0) {
      copy.CopyFirst(stage);
    } else {
      copy.CopyNext(stage);
    }
    if constexpr (Variant::kConfig.copies == Copies::kAsync) {
      ptx::CpAsyncCommit();
      ptx::CpAsyncWait<0>();
    }
    __syncthreads();
    product.Multiply(stage);
    __syncthreads();
  }
}

// Fills all stages but one. If there are fewer k-tiles, the groups of copies beyond them are empty.
template <class Variant>
__device__ void FillRing(StageCopy<Variant>& copy, RingStage<Variant>& filled) {
#pragma unroll
  for (int k_tile = 0; k_tile < Variant::kConfig.stages - 1; ++k_tile) {
    if (k_tile == 0) {
      copy.CopyFirst(filled.data());
    } else if (k_tile < copy.k_tiles()) {
      copy.CopyNext(filled.data());
    }
    ptx::CpAsyncCommit();
    filled.Advance();
  }
}

// The pipeline. For each k-tile the threads wait for their copies of it and meet at a
// barrier. After that the k-tile is complete, and the stage of the one before is free:
// the threads start to fill it.
template <class Variant>
__device__ void MultiplyPipelined(WarpProduct<Variant>& product, StageCopy<Variant>& copy,
                                  std::byte* ring) {
  constexpr int kAhead = Variant::kConfig.stages - 1;
  const int k_tiles = copy.k_tiles();
  RingStage<Variant> filled{ring}, read{ring};
  FillRing(copy, filled);
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    ptx::CpAsyncWait<kAhead - 1>();
    __syncthreads();
    if (k_tile + kAhead < k_tiles) copy.CopyNext(filled.data());
    ptx::CpAsyncCommit();
    filled.Advance();
    product.Multiply(read.data());
    read.Advance();
  }
  __syncthreads();
}

// The same, with the fragments of a step read during the step before. The last step of a
// k-tile reads the first fragments of the next k-tile, so the wait and the barrier come
// before it. The stage that is filled during the first step of a k-tile was read to its
// end before the barrier of the k-tile before.
template <class Variant>
__device__ void MultiplyAhead(WarpProduct<Variant>& product, StageCopy<Variant>& copy,
                              std::byte* ring) {
  constexpr int kAhead = Variant::kConfig.stages - 1;
  constexpr int kSteps = Variant::kConfig.steps();
  static_assert(kSteps % 2 == 0, "a step's parity picks its registers");
  const int k_tiles = copy.k_tiles();
  RingStage<Variant> filled{ring}, read{ring};
  FillRing(copy, filled);
  ptx::CpAsyncWait<kAhead - 1>();
  __syncthreads();
  typename WarpProduct<Variant>::Step steps[2];
  product.Read(steps[0], read.data(), 0);
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int next = (step + 1) % kSteps;
      if (next == 0) {
        ptx::CpAsyncWait<kAhead - 1>();
        __syncthreads();
        read.Advance();
      }
      // Fragments read past the last k-tile are never multiplied.
      product.Read(steps[next % 2], read.data(), next);
      if (step == 0) {
        if (k_tile + kAhead < k_tiles) copy.CopyNext(filled.data());
        ptx::CpAsyncCommit();
        filled.Advance();
      }
      product.MultiplyStep(steps[step % 2]);
    }
  }
  __syncthreads();
}

// The same with one set of registers: a fragment of the next step is read as soon as the
// last use of its registers is over. In the last step of a k-tile those reads begin after the first
// row of fragments, so the wait and the barrier come there. All warps have then read the k-tile to
// its end, and its stage is filled again.
template <class Variant>
__device__ void MultiplyRotating(WarpProduct<Variant>& product, StageCopy<Variant>& copy,
                                 std::byte* ring) {
  constexpr Config kConfig = Variant::kConfig;
  static_assert(kConfig.tiles_m > 1, "fragments of B outlive the first row");
  const int k_tiles = copy.k_tiles();
  RingStage<Variant> stage{ring};
#pragma unroll
  for (int k_tile = 0; k_tile < kConfig.stages; ++k_tile) {
    if (k_tile == 0) {
      copy.CopyFirst(stage.data());
    } else if (k_tile < k_tiles) {
      copy.CopyNext(stage.data());
    }
    ptx::CpAsyncCommit();
    stage.Advance();
  }
  ptx::CpAsyncWait<kConfig.stages - 1>();
  __syncthreads();
  typename WarpProduct<Variant>::Step fragments;
  product.Read(fragments, stage.data(), 0);
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
#pragma unroll 1  // unrolled steps take more registers than there are
    for (int step = 0; step < kConfig.steps(); ++step) {
      // Fragments read past the last k-tile are never multiplied.
      const int next = step + 1 == kConfig.steps() ? 0 : step + 1;
#pragma unroll
      for (int i = 0; i < kConfig.tiles_m; ++i) {
#pragma unroll
        for (int j = 0; j < kConfig.tiles_n; ++j) {
          product.MultiplyTile(fragments, i, j);
          if (i + 1 == kConfig.tiles_m) product.ReadB(fragments, stage.data(), next, j);
        }
        if (i == 0 && next == 0) {
          ptx::CpAsyncWait<kConfig.stages - 2>();
          __syncthreads();
          if (k_tile + kConfig.stages < k_tiles) copy.CopyNext(stage.data());
          ptx::CpAsyncCommit();
          stage.Advance();
        }
        product.ReadA(fragments, stage.data(), next, i);
      }
    }
  }
  __syncthreads();
}

template <class Variant>
__device__ __forceinline__ std::byte* SharedMemory() {
  if constexpr (Variant::kConfig.dynamic_shared) {
    extern __shared__ __align__(128) std::byte dynamic_memory[];
    return dynamic_memory;
  } else {
    __shared__ __align__(128) std::byte memory[Variant::kConfig.shared_bytes()];
    return memory;
  }
}

// `Variant` has a constexpr Config kConfig.
template <class Variant>
__global__
__launch_bounds__(Variant::kConfig.threads(), Variant::kConfig.blocks_per_sm) void WmmaKernel(
    const __grid_constant__ Arguments<Variant::kConfig.type> args) {
  constexpr Config kConfig = Variant::kConfig;
  const TileCoord tile =
      BandedTile(static_cast<int>(blockIdx.x), args.tiles_m, args.tiles_n, args.band);
  const int64_t first_i = static_cast<int64_t>(tile.m) * kConfig.tile_m();
  const int64_t first_j = static_cast<int64_t>(tile.n) * kConfig.tile_n();
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / kConfig.warps_n, warp_n = warp % kConfig.warps_n;

  std::byte* const shared = SharedMemory<Variant>();
  StageCopy<Variant> copy(args, first_i, first_j);
  WarpProduct<Variant> product(warp_m, warp_n);
  if constexpr (kConfig.stages == 1) {
    MultiplyInTurn(product, copy, shared);
  } else if constexpr (kConfig.reads == FragmentReads::kAhead) {
    MultiplyAhead(product, copy, shared);
  } else if constexpr (kConfig.reads == FragmentReads::kRotating) {
    MultiplyRotating(product, copy, shared);
  } else {
    MultiplyPipelined(product, copy, shared);
  }
  // The stages are free: the warps' strips take their memory.
  StoreWarpTile(product, args.epilogue, shared + warp * kConfig.strip().bytes(),
                first_i + warp_m * kConfig.warp_m(), first_j + warp_n * kConfig.warp_n(), args.m,
                args.n);
}

}  // namespace gemm::wmma
