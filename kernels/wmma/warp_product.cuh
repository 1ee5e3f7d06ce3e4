// A warp's part of the product of two panels in shared memory, with its accumulators.
#pragma once

#include <mma.h>

#include <cstddef>
#include <type_traits>

#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/wmma_tf32.cuh"
#include "kernels/wmma/config.h"

namespace gemm::wmma {

// `Variant` has a constexpr Config kConfig.
template <class Variant>
class WarpProduct {
  static constexpr Config kConfig = Variant::kConfig;
  static constexpr Panel kPanelA = kConfig.panel_a();
  static constexpr Panel kPanelB = kConfig.panel_b();
  static constexpr bool kTf32 = kConfig.type == DType::kF32;

  using Element = std::conditional_t<kTf32, float, __half>;
  using Factor = std::conditional_t<kTf32, nvcuda::wmma::precision::tf32, __half>;
  template <class Use, class Type, class... Layout>
  using Fragment =
      nvcuda::wmma::fragment<Use, kConfig.wmma_m, kConfig.wmma_n, kConfig.wmma_k, Type, Layout...>;
  using FragmentA = Fragment<nvcuda::wmma::matrix_a, Factor, nvcuda::wmma::row_major>;
  using FragmentB = Fragment<nvcuda::wmma::matrix_b, Factor, nvcuda::wmma::row_major>;

 public:
  // The fragments of one step over k.
  struct Step {
    FragmentA a[kConfig.tiles_m];
    FragmentB b[kConfig.tiles_n];
  };
  using AccumulatorElement = std::conditional_t<kConfig.accumulate == DType::kF32, float, __half>;
  using AccumulatorFragment = Fragment<nvcuda::wmma::accumulator, AccumulatorElement>;

  __device__ WarpProduct(int warp_m, int warp_n)
      : a_begin_(warp_m * kConfig.warp_m() * kPanelA.pitch()),
        b_begin_(kPanelA.bytes() + warp_n * kConfig.tiles_n * kPanelB.fragment_pitch()) {
#pragma unroll
    for (auto& row : accumulators) {
#pragma unroll
      for (AccumulatorFragment& tile : row) {
        nvcuda::wmma::fill_fragment(tile, AccumulatorElement(0));
      }
    }
  }

  // Read the fragment in row `i`, or in column `j`, of a step over k.
  __device__ void ReadA(Step& fragments, const std::byte* stage, int step, int i) const {
    const int offset = i * kConfig.wmma_m * kPanelA.pitch() + step * kPanelA.fragment_pitch();
    ReadFragment(fragments.a[i], stage + a_begin_ + offset, kPanelA.ld());
  }
  __device__ void ReadB(Step& fragments, const std::byte* stage, int step, int j) const {
    const int offset = step * kConfig.wmma_k * kPanelB.pitch() + j * kPanelB.fragment_pitch();
    ReadFragment(fragments.b[j], stage + b_begin_ + offset, kPanelB.ld());
  }
  __device__ void Read(Step& fragments, const std::byte* stage, int step) const {
#pragma unroll
    for (int i = 0; i < kConfig.tiles_m; ++i) ReadA(fragments, stage, step, i);
#pragma unroll
    for (int j = 0; j < kConfig.tiles_n; ++j) ReadB(fragments, stage, step, j);
  }

  __device__ void MultiplyTile(const Step& step, int i, int j) {
    nvcuda::wmma::mma_sync(accumulators[i][j], step.a[i], step.b[j], accumulators[i][j]);
  }
  __device__ void MultiplyStep(const Step& step) {
#pragma unroll
    for (int i = 0; i < kConfig.tiles_m; ++i) {
#pragma unroll
      for (int j = 0; j < kConfig.tiles_n; ++j) {
        MultiplyTile(step, i, j);
      }
    }
  }

  // Multiplies the panels of a stage.
  __device__ void Multiply(const std::byte* stage) {
    if constexpr (kConfig.reads == FragmentReads::kAheadInKTile) {
      Step steps[2];
      Read(steps[0], stage, 0);
#pragma unroll
      for (int step = 0; step < kConfig.steps(); ++step) {
        if (step + 1 < kConfig.steps()) Read(steps[(step + 1) % 2], stage, step + 1);
        MultiplyStep(steps[step % 2]);
      }
    } else {
#pragma unroll 1  // otherwise the compiler reads ahead
      for (int step = 0; step < kConfig.steps(); ++step) {
        Step fragments;
        Read(fragments, stage, step);
        MultiplyStep(fragments);
      }
    }
  }

  AccumulatorFragment accumulators[kConfig.tiles_m][kConfig.tiles_n];

 private:
  template <class OperandFragment>
  __device__ static void ReadFragment(OperandFragment& fragment, const std::byte* from,
                                      unsigned ld) {
    if constexpr (kTf32) {
      ptx::WmmaLoad(fragment, ptx::SharedAddress(from), ld);
#pragma unroll
      for (float& x : fragment.x) x = nvcuda::wmma::__float_to_tf32(x);
    } else {
      nvcuda::wmma::load_matrix_sync(fragment, reinterpret_cast<const Element*>(from), ld);
    }
  }

  int a_begin_;  // offset of the warp's rows in a stage, and of its columns
  int b_begin_;
};

}  // namespace gemm::wmma
