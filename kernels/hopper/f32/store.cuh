// Stores a thread's accumulators to D.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/epilogue/epilogue.cuh"
#include "kernels/hopper/f32/lines.h"

namespace gemm {

// The begin of a tile in D, and the end of D.
struct HopperF32Place {
  int row;
  int column;
  int m;
  int n;
};

// Stores kRows rows of a thread's part of a tile, from its row `first` on. If B lies along k,
// columns are stored one by one: a thread's columns are not adjacent.
template <class Variant, bool kTransA, bool kTransB>
class HopperF32Store {
  static constexpr HopperF32Config kConfig = Variant::kConfig;
  using Operands = HopperF32Operands<Variant, kTransA, kTransB>;
  using A = typename Operands::A;
  using B = typename Operands::B;
  static constexpr int kThreadN = kConfig.thread_n;
  static constexpr int kRun = B::kIsAlongK ? 1 : 4;
  static constexpr int kRuns = kThreadN / kRun;

 public:
  __device__ HopperF32Store(const HopperF32Thread<Variant>& thread, const HopperF32Place& tile)
      : tile_(tile),
        lane_m_(thread.lane_m()),
        row_(tile.row + thread.warp_row()),
        column_(tile.column + thread.warp_column() + B::Line(thread.lane_n(), 0)) {}

  // Requires OnlyScales(), and rows of D that end with a run.
  template <int kRows>
  __device__ __forceinline__ void Scaled(const float (&accumulators)[kRows][kThreadN], int first,
                                         const Epilogue<DType::kF32>& epilogue) const {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = row_ + A::Line(lane_m_, first + i);
      if (row >= tile_.m) continue;
#pragma unroll
      for (int run = 0; run < kRuns; ++run) {
        const int column = column_ + B::Line(0, run * kRun);
        if (column >= tile_.n) continue;
        float values[kRun];
#pragma unroll
        for (int x = 0; x < kRun; ++x) values[x] = accumulators[i][run * kRun + x];
        epilogue.template StoreScaledRun<kRun>(values, row, column);
      }
    }
  }

  // Applies the whole epilogue. Its code is long, so it exists once, and a branch finds the
  // accumulators.
  template <int kRows>
  __device__ __forceinline__ void Finished(const float (&accumulators)[kRows][kThreadN], int first,
                                           const Epilogue<DType::kF32>& epilogue) const {
#pragma unroll 1
    for (int i = 0; i < kRows; ++i) {
      const int row = row_ + A::Line(lane_m_, first + i);
      if (row >= tile_.m) continue;
#pragma unroll 1
      for (int run = 0; run < kRuns; ++run) {
        float found[kRun];
        Find(accumulators, i * kRuns + run, found, std::make_index_sequence<kRows * kRuns>());
        const int column = column_ + B::Line(0, run * kRun);
        if (column < tile_.n) epilogue.template StoreRun<kRun>(found, row, column, tile_.n);
      }
    }
  }

 private:
  // Copies run `index` of the accumulators. The indices are constants from the start: in an
  // unrolled loop the compiler replaced them by `index`, and moved the accumulators to local
  // memory.
  template <int kRows, size_t... kKnown>
  __device__ __forceinline__ static void Find(const float (&accumulators)[kRows][kThreadN],
                                              int index, float (&found)[kRun],
                                              std::index_sequence<kKnown...>) {
    const auto copy = [&](const float* run) {
#pragma unroll
      for (int x = 0; x < kRun; ++x) found[x] = run[x];
    };
    ((index == static_cast<int>(kKnown) ? copy(&accumulators[kKnown / kRuns][kKnown % kRuns * kRun])
                                        : void()),
     ...);
  }

  const HopperF32Place tile_;
  const int lane_m_;
  const int row_;
  const int column_;
};

}  // namespace gemm
