// The lines of a tile that a thread multiplies, and their places in shared memory. A line is a row
// of op(A) or a column of op(B).
//
// Operands that lie along k are in boxes whose rows are lines, swizzled as box.h says. A thread
// reads four elements along k of a line, and its lines are as far apart as there are lanes. So the
// eight lanes of a phase read different banks, or the same address. Other operands are in boxes
// whose rows are steps of k, one after the other. There a thread reads four lines of a step at
// once, and the four of the next lane follow.
#pragma once

#include "kernels/hopper/box.h"
#include "kernels/hopper/f32/config.h"

namespace gemm {

// `kLanes` along the operand's lines, `kCount` lines of a thread, of `kTile` in all.
template <bool kAlongK, int kLanes, int kCount, int kTile>
struct HopperF32Lines {
  static constexpr bool kIsAlongK = kAlongK;
  static constexpr int kLines = kCount;
  static constexpr int kStepBytes = kTile * 4;  // from one step of k to the next, where not along k
  static_assert(!kAlongK || kLanes == 4 || kLanes == 8);

  // Line `i` of a thread, from its warp's first one, which is a multiple of 8.
  GEMM_HOST_DEVICE static constexpr int Line(int lane, int i) {
    return kAlongK ? i * kLanes + lane : i / 4 * 4 * kLanes + lane * 4 + i % 4;
  }

  // The common part of a thread's offsets in a tile.
  GEMM_HOST_DEVICE static constexpr unsigned Origin(int warp_line, int lane) {
    const int offset =
        kAlongK ? (warp_line + lane) * kBoxRowBytes + lane * 16 : (warp_line + lane * 4) * 4;
    return static_cast<unsigned>(offset);
  }

  // The offset of chunk `chunk` of k of the thread's lines. If `origin` already includes a tile's
  // address in shared memory, so does the result.
  GEMM_HOST_DEVICE static constexpr unsigned AtChunk(unsigned origin, int chunk) {
    if constexpr (kAlongK) return origin ^ static_cast<unsigned>(chunk * 16);
    return origin + static_cast<unsigned>(chunk * HopperF32Config::kChunk * kStepBytes);
  }

  // From there to line `i`, if the operand lies along k. With four lanes, a chunk's place differs
  // from one line to the next.
  GEMM_HOST_DEVICE static constexpr unsigned AtLine(unsigned at_chunk, int i) {
    return (at_chunk ^ static_cast<unsigned>(i * kLanes % 8 * 16)) +
           static_cast<unsigned>(i * kLanes * kBoxRowBytes);
  }

  // From there to lines 4 `quad` to 4 `quad` + 3 of step `step` of the chunk, if it does not.
  GEMM_HOST_DEVICE static constexpr unsigned AtQuad(unsigned at_chunk, int step, int quad) {
    return at_chunk + static_cast<unsigned>(step * kStepBytes + quad * 4 * kLanes * 4);
  }
};

template <class Variant, bool kTransA, bool kTransB>
struct HopperF32Operands {
  static constexpr HopperF32Config kConfig = Variant::kConfig;
  using A = HopperF32Lines<!kTransA, kConfig.lanes_m, kConfig.thread_m, kConfig.tile_m>;
  using B = HopperF32Lines<kTransB, kConfig.lanes_n(), kConfig.thread_n, kConfig.tile_n>;
};

// A thread's place among those that multiply.
template <class Variant>
struct HopperF32Thread {
  static constexpr HopperF32Config kConfig = Variant::kConfig;
  int warp;
  int lane;

  // The first row and column of its warp in the tile.
  GEMM_HOST_DEVICE constexpr int warp_row() const {
    return warp / kConfig.warps_n() * kConfig.warp_m();
  }
  GEMM_HOST_DEVICE constexpr int warp_column() const {
    return warp % kConfig.warps_n() * kConfig.warp_n();
  }
  // A half warp has a few rows and all columns of the warp's grid. So a 16-byte load touches at
  // most 128 bytes in a half warp, and takes one pass, not two.
  GEMM_HOST_DEVICE constexpr int lane_m() const {
    return kConfig.lanes_m == 4 ? lane / 16 * 2 + lane % 2 : lane % 8;
  }
  GEMM_HOST_DEVICE constexpr int lane_n() const {
    return kConfig.lanes_m == 4 ? lane % 16 / 2 : lane / 8;
  }
};

}  // namespace gemm
