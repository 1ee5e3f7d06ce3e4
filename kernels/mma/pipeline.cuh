// The order of a block's copies, reads of fragments and products.
#pragma once

#include "kernels/mma/k_tile_stream.cuh"
#include "kernels/mma/warp_product.cuh"

namespace gemm::mma {

// The fragments of one step over k.
template <class Variant>
struct Fragments {
  static constexpr Config kConfig = Variant::kConfig;
  using Product = WarpProduct<Variant>;
  static constexpr int kPairs = Product::kPairs;
  static constexpr int kRows = kConfig.tiles_m;

  typename Product::BlockA a[kRows];
  typename Product::BlockB b[kPairs];

  __device__ void ReadRow(const Product& product, uint32_t stage, int step, int row) {
    product.ReadA(a[row], stage, step, row);
  }
  __device__ void ReadColumns(const Product& product, uint32_t stage, int step) {
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) product.ReadB(b[pair], stage, step, pair);
  }
  __device__ void Read(const Product& product, uint32_t stage, int step) {
    ReadColumns(product, stage, step);
#pragma unroll
    for (int row = 0; row < kRows; ++row) ReadRow(product, stage, step, row);
  }
};

// The x-th pair of columns that a row of mma tiles multiplies, and whether the row runs
// from right to left. With `alternate` rows change direction from one to the next, also
// from step to step, so that successive products share a fragment.
struct PairOrder {
  int pair;
  bool leftward;
};
template <class Variant>
__device__ constexpr PairOrder NthPair(int step, int row, int x) {
  const bool leftward = Variant::kConfig.alternate && (step + row) % 2 == 1;
  return {leftward ? WarpProduct<Variant>::kPairs - 1 - x : x, leftward};
}

template <class Variant>
__device__ void MultiplyRow(WarpProduct<Variant>& product, const Fragments<Variant>& fragments,
                            int step, int row) {
#pragma unroll
  for (int x = 0; x < Fragments<Variant>::kPairs; ++x) {
    const PairOrder order = NthPair<Variant>(step, row, x);
    product.Multiply(row, order.pair, order.leftward, fragments.a[row], fragments.b[order.pair]);
  }
}

// Multiplies a stage. Each step's fragments are read just before.
template <class Variant>
__device__ void MultiplyStage(WarpProduct<Variant>& product, uint32_t stage) {
#pragma unroll
  for (int step = 0; step < Variant::kConfig.steps(); ++step) {
    Fragments<Variant> fragments;
    fragments.Read(product, stage, step);
#pragma unroll
    for (int row = 0; row < Variant::kConfig.tiles_m; ++row) {
      MultiplyRow(product, fragments, step, row);
    }
  }
}

// One stage. All threads fill it, then all read it.
template <class Variant>
class InTurn {
 public:
  __device__ InTurn(const Arguments& args, uint32_t shared) : stream_(args), stage_(shared) {}

  // Adds the product of the block's next tile to the accumulators.
  __device__ void MultiplyTile(WarpProduct<Variant>& product) {
    for (int k_tile = 0; k_tile < stream_.count(); ++k_tile) {
      if (k_tile == 0) {
        stream_.CopyFirst(stage_);
      } else {
        stream_.CopyNext(stage_);
      }
      __syncthreads();
      MultiplyStage(product, stage_);
      __syncthreads();
    }
  }

 private:
  KTileStream<Variant> stream_;
  uint32_t stage_;
};

// A ring of stages: one is read while the others are filled. Each k-tile is one group
// of cp.async. After the last k-tile the groups are empty.
template <class Variant>
class Ring {
  static constexpr Config kConfig = Variant::kConfig;
  static constexpr uint32_t kStageBytes = kConfig.stage_bytes();
  static constexpr uint32_t kRingBytes = kConfig.shared_bytes();

 public:
  // Starts to fill all stages but the last.
  __device__ Ring(const Arguments& args, uint32_t shared)
      : stream_(args), begin_(shared), read_(shared), free_(shared + kRingBytes - kStageBytes) {
#pragma unroll
    for (int stage = 0; stage < kConfig.stages - 1; ++stage) {
      const uint32_t at = shared + static_cast<uint32_t>(stage) * kStageBytes;
      if (stage == 0) {
        stream_.CopyFirst(at);
      } else {
        stream_.CopyNext(at);
      }
      ptx::CpAsyncCommit();
    }
  }

  __device__ int k_tiles() const { return stream_.count(); }

  // The stage that is read.
  __device__ uint32_t stage() const { return read_; }

  // Waits until all threads' copies to the stage that is read have arrived. After that
  // the stage read before it is free.
  __device__ void Wait() const {
    ptx::CpAsyncWait<kConfig.stages - 2>();
    __syncthreads();
  }

  // Starts to fill the free stage. Called once between two waits.
  __device__ void Fill() {
    stream_.CopyNext(free_);
    ptx::CpAsyncCommit();
  }

  // Moves on to the next stage. Wait() must follow before it is read.
  __device__ void Advance() {
    free_ = read_;
    read_ = read_ + kStageBytes == begin_ + kRingBytes ? begin_ : read_ + kStageBytes;
  }

 private:
  KTileStream<Variant> stream_;
  uint32_t begin_;
  uint32_t read_;
  uint32_t free_;
};

// The pipeline that reads fragments just before it multiplies them.
template <class Variant>
class Pipelined {
 public:
  __device__ Pipelined(const Arguments& args, uint32_t shared) : ring_(args, shared) {}

  __device__ void MultiplyTile(WarpProduct<Variant>& product) {
    for (int k_tile = 0; k_tile < ring_.k_tiles(); ++k_tile) {
      ring_.Wait();
      ring_.Fill();
      MultiplyStage(product, ring_.stage());
      ring_.Advance();
    }
  }

 private:
  Ring<Variant> ring_;
};

// The pipeline that reads fragments one step ahead. It reads the first fragments of a
// stage during the last step of the stage before. The ring advances there, behind the
// products of one row, which run meanwhile.
//
// With rotating buffers a fragment is read into the registers of its predecessor, right
// after that one's last use. Rows then alternate in direction, so that the pair of
// columns that is free first is needed first.
template <class Variant>
class PipelinedAhead {
  static constexpr Config kConfig = Variant::kConfig;
  static constexpr bool kRotating = kConfig.buffers == FragmentBuffers::kRotating;
  static constexpr int kSets = kRotating ? 1 : 2;
  static constexpr int kSteps = kConfig.steps();
  static constexpr int kRows = kConfig.tiles_m;
  static_assert(kSteps % kSets == 0, "a step's number picks its registers");
  static_assert(!kRotating || (kConfig.alternate && kSteps % 2 == 0 && kRows % 2 == 0));

 public:
  __device__ PipelinedAhead(const Arguments& args, uint32_t shared) : ring_(args, shared) {
    ring_.Wait();
  }

  __device__ void MultiplyTile(WarpProduct<Variant>& product) {
    Fragments<Variant> sets[kSets];
    sets[0].Read(product, ring_.stage(), 0);
    for (int k_tile = 0; k_tile < ring_.k_tiles(); ++k_tile) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        // Fragments read past the last k-tile are read again for the next tile.
        MultiplyStep(product, sets[step % kSets], sets[(step + 1) % kSets], step);
      }
    }
  }

 private:
  __device__ void MultiplyStep(WarpProduct<Variant>& product, Fragments<Variant>& now,
                               Fragments<Variant>& next, int step) {
    const int ahead = (step + 1) % kSteps;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if (kRotating && row == kRows - 1) {
        MultiplyLastRow(product, now, step);
      } else {
        MultiplyRow(product, now, step, row);
      }
      if (row == 0 && step == 0) ring_.Fill();
      if (row == 0 && ahead == 0) {
        ring_.Advance();
        ring_.Wait();
      }
      if (row == 0 && !kRotating) next.ReadColumns(product, ring_.stage(), ahead);
      next.ReadRow(product, ring_.stage(), ahead, row);
    }
  }

  // Replaces each pair of columns after its last use.
  __device__ void MultiplyLastRow(WarpProduct<Variant>& product, Fragments<Variant>& now,
                                  int step) {
#pragma unroll
    for (int x = 0; x < Fragments<Variant>::kPairs; ++x) {
      const PairOrder order = NthPair<Variant>(step, kRows - 1, x);
      product.Multiply(kRows - 1, order.pair, order.leftward, now.a[kRows - 1], now.b[order.pair]);
      product.ReadB(now.b[order.pair], ring_.stage(), (step + 1) % kSteps, order.pair);
    }
  }

  Ring<Variant> ring_;
};

}  // namespace gemm::mma
