// Copies the k-tiles of A and B of a thread block.
#pragma once

#include <cstdint>

#include "kernels/grouped/config.h"
#include "kernels/grouped/tile_copy.cuh"
#include "kernels/grouped/tile_of_d.cuh"

namespace gemm {

// A kernel argument.
struct GroupedArguments {
  StoredMatrix a;
  StoredMatrix b;
  int64_t m;
  int64_t n;
  int64_t k;
  int tiles_m;
  int tiles_n;
  int group;  // tile rows of a group of the L2-grouped order
};

template <class Variant>
class OperandTiles {
  static constexpr GroupedConfig kConfig = Variant::kConfig;
  static constexpr int kElementBytes = kConfig.element_bytes();
  static constexpr int kStepBytes = kConfig.tile_k * kElementBytes;

 public:
  __device__ OperandTiles(const GroupedArguments& arguments, const TileOfD& tile, int thread)
      : rows_a_(Clamp<kConfig.tile_m>(tile.m - tile.rows.begin)),
        cols_b_(Clamp<kConfig.tile_n>(tile.n - tile.cols.begin)),
        k_left_(arguments.k),
        step_b_(kConfig.trans_b() ? kStepBytes : arguments.b.pitch * kConfig.tile_k),
        a_(arguments.a, tile.rows.begin, 0, thread),
        b_(arguments.b, kConfig.trans_b() ? tile.cols.begin : 0,
           kConfig.trans_b() ? 0 : tile.cols.begin * kElementBytes, thread) {}

  // Starts to copy the next k-tile, if there is one, to the stage at shared address
  // `stage`, as one group of cp.async.
  __device__ __forceinline__ void StartNext(uint32_t stage) {
    if (k_left_ > 0) {
      const int depth = Clamp<kConfig.tile_k>(k_left_);
      a_.Start(stage, rows_a_, depth * kElementBytes);
      const uint32_t stage_b = stage + kConfig.tile_a().bytes();
      if constexpr (kConfig.trans_b()) {
        b_.Start(stage_b, cols_b_, depth * kElementBytes);
      } else {
        b_.Start(stage_b, depth, cols_b_ * kElementBytes);
      }
      a_.Advance(kStepBytes);
      b_.Advance(step_b_);
      k_left_ -= kConfig.tile_k;
    }
    ptx::CpAsyncCommit();
  }

 private:
  template <int kMost>
  __device__ static int Clamp(int64_t left) {
    return left < kMost ? static_cast<int>(left) : kMost;
  }

  const int rows_a_;
  const int cols_b_;
  int64_t k_left_;
  const int64_t step_b_;
  TileCopy<kConfig.tile_a(), kConfig.threads()> a_;
  TileCopy<kConfig.tile_b(), kConfig.threads()> b_;
};

}  // namespace gemm
