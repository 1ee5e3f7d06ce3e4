// Stores a warpgroup's accumulators to D through boxes in shared memory.
#pragma once

#include <cstdint>

#include "kernels/epilogue/batch_strides.h"
#include "kernels/epilogue/epilogue.cuh"
#include "kernels/hopper/accumulators.cuh"
#include "kernels/hopper/box.h"
#include "kernels/hopper/config.h"
#include "kernels/hopper/store_boxes.cuh"
#include "kernels/hopper/write_box.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"

namespace gemm {

// Calls visitor.template operator()<kD>() for the run-time type of D. That is the accumulators'
// type, or that of 16-bit operands. With 8-bit operands it may be f16 or bf16, and with s8 f32 as
// well.
template <class Variant, class Visitor>
__device__ __forceinline__ void VisitHopperOutput(DType type, const Visitor& visitor) {
  constexpr HopperConfig kConfig = Variant::kConfig;
  if constexpr (kConfig.integers()) {
    if (type == DType::kS32) {
      visitor.template operator()<DType::kS32>();
      return;
    }
  }
  if constexpr (kConfig.operand == kConfig.accumulator) {
    visitor.template operator()<kConfig.accumulator>();
  } else if (type == DType::kF32) {
    visitor.template operator()<DType::kF32>();
  } else if constexpr (kConfig.element_bytes() == 2) {
    visitor.template operator()<kConfig.operand>();
  } else if (type == DType::kBF16) {
    visitor.template operator()<DType::kBF16>();
  } else {
    visitor.template operator()<DType::kF16>();
  }
}

// The begin of a box in the D of a batch's product.
struct BoxOfD {
  int product;
  int row;
  int column;
};

// Cuts accumulators into boxes of D: kBlocks blocks of 64 lines, kCount registers each.
template <class Variant, DType kD, class Register, int kBlocks, int kCount>
struct BoxesOfD {
  static constexpr HopperConfig kConfig = Variant::kConfig;
  static constexpr int kColumns = HopperConfig::kPanelBytes / static_cast<int>(SizeOf(kD));
  // Boxes side by side, if lines are columns of D.
  static constexpr int kAcross = kConfig.swap ? 64 / kColumns : 1;
  // Columns of accumulators, and their registers.
  static constexpr int kWidth = kConfig.swap ? kConfig.box_rows() : kColumns;
  static constexpr int kRegisters = kWidth / 4 * kPairRegisters<Register>;
  static constexpr int kAlong = kCount / kRegisters;
  static constexpr int kBoxes = kBlocks * kAlong * kAcross;

  // The place of box `box`, if the first one is at `at`.
  __device__ static BoxOfD Place(const BoxOfD& at, int box) {
    const int block = box / (kAlong * kAcross), along = box / kAcross % kAlong;
    const int lines = block * 64, width = along * kWidth;
    if constexpr (kConfig.swap) {
      return {at.product, at.row + width, at.column + lines + box % kAcross * kColumns};
    }
    return {at.product, at.row + lines, at.column + width};
  }

  template <bool kOne>
  __device__ __forceinline__ static void Write(const Register (&accumulators)[kBlocks][kCount],
                                               int box, uint32_t shared,
                                               const Epilogue<kD>& epilogue,
                                               const WarpgroupThread& thread) {
    const Register* const acc =
        &accumulators[box / (kAlong * kAcross)][box / kAcross % kAlong * kRegisters];
    if constexpr (kD == DType::kS32) {  // alpha is 1
      if constexpr (kConfig.swap) {
        WriteIntegersTransposed<kWidth>(acc, shared, box % kAcross, thread);
      } else {
        WriteIntegers(acc, shared, thread);
      }
    } else if constexpr (kD != DType::kF32) {
      WriteScaled16<kD, kOne, kConfig.swap, kWidth>(acc, shared, epilogue, thread);
    } else {
      const float scale = kOne ? 1 : epilogue.alpha;
      if constexpr (kConfig.swap) {
        WriteFloatsTransposed<kWidth>(acc, shared, box % kAcross, scale, thread);
      } else {
        WriteFloats(acc, shared, scale, thread);
      }
    }
  }
};

// Loads four accumulators of a box in the epilogue's form.
__device__ __forceinline__ void LoadQuad(uint32_t shared, float* quad) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(quad[0]), "=f"(quad[1]), "=f"(quad[2]), "=f"(quad[3])
               : "r"(shared)
               : "memory");
}
template <class Scalar>
__device__ __forceinline__ void LoadIntegerQuad(uint32_t shared, Scalar* quad) {
  int32_t loaded[4];
  asm volatile("ld.shared.v4.s32 {%0, %1, %2, %3}, [%4];"
               : "=r"(loaded[0]), "=r"(loaded[1]), "=r"(loaded[2]), "=r"(loaded[3])
               : "r"(shared)
               : "memory");
#pragma unroll
  for (int x = 0; x < 4; ++x) quad[x] = static_cast<Scalar>(WrappingS32(loaded[x]));
}

// Applies the whole epilogue to a box of accumulators, and stores these elements of D.
template <DType kD, int kRows, bool kIntegers>
__device__ __forceinline__ void StoreFinished(uint32_t box, const Epilogue<kD>& epilogue,
                                              const BoxOfD& at, int m, int n,
                                              const WarpgroupThread& thread) {
  constexpr int kRun = static_cast<int>(kRowAlignment / SizeOf(kD));
  constexpr int kRunsPerRow = 32 / kRun;
#pragma unroll 1
  for (int run = thread.index; run < kRows * kRunsPerRow; run += ptx::kWarpgroupThreads) {
    const int row = run / kRunsPerRow, column = run % kRunsPerRow * kRun;
    if (at.row + row >= m || at.column + column >= n) continue;
    typename Epilogue<kD>::Scalar accumulators[kRun];
#pragma unroll
    for (int quad = 0; quad < kRun / 4; ++quad) {
      const uint32_t from = box + ChunkOfBox(row, column / 4 + quad);
      if constexpr (kIntegers) {
        LoadIntegerQuad(from, accumulators + 4 * quad);
      } else {
        LoadQuad(from, accumulators + 4 * quad);
      }
    }
    epilogue.template StoreRun<kRun>(accumulators, at.row + row, at.column + column, n);
  }
}

// Stores alpha times the accumulators, from `at` on; kOne: alpha is 1. Requires OnlyScales(), and
// rows of D that end with a chunk.
template <class Variant, DType kD, bool kOne, class Register, int kBlocks, int kCount>
__device__ __forceinline__ void StoreScaled(const Register (&accumulators)[kBlocks][kCount],
                                            StoreBoxes<Variant>& boxes, const CUtensorMap* map,
                                            const Epilogue<kD>& epilogue, const BoxOfD& at,
                                            const WarpgroupThread& thread) {
  using Boxes = BoxesOfD<Variant, kD, Register, kBlocks, kCount>;
  constexpr int kBatch = StoreBoxes<Variant>::template kBatch<Boxes::kBoxes>;
  constexpr int kBoxBytes = Variant::kConfig.box_bytes();
#pragma unroll
  for (int first = 0; first < Boxes::kBoxes; first += kBatch) {
    const uint32_t batch = boxes.template Next<kBatch>();
#pragma unroll
    for (int box = first; box < first + kBatch && box < Boxes::kBoxes; ++box) {
      Boxes::template Write<kOne>(accumulators, box, batch + (box - first) * kBoxBytes, epilogue,
                                  thread);
    }
    boxes.Leave([&](uint32_t shared) {
#pragma unroll
      for (int box = first; box < first + kBatch && box < Boxes::kBoxes; ++box) {
        const BoxOfD place = Boxes::Place(at, box);
        ptx::StoreBox(map, place.column, place.row, place.product,
                      shared + (box - first) * kBoxBytes);
      }
    });
  }
}

// Applies the whole epilogue to the accumulators, and stores them within m rows and n columns. Its
// code is long, so it exists once, and a branch finds the accumulators.
template <class Variant, class Register, int kBlocks, int kCount>
__device__ __forceinline__ void StoreAnyEpilogue(const Register (&accumulators)[kBlocks][kCount],
                                                 StoreBoxes<Variant>& boxes,
                                                 const Epilogue<DType::kF32>& epilogue,
                                                 DType output, const BoxOfD& at, int m, int n,
                                                 const BatchStrides& strides,
                                                 const WarpgroupThread& thread) {
  constexpr bool kIntegers = Variant::kConfig.integers();
  // Accumulators are written as they are, in boxes of their own width.
  constexpr DType kWritten = kIntegers ? DType::kS32 : DType::kF32;
  using Boxes = BoxesOfD<Variant, kWritten, Register, kBlocks, kCount>;
#pragma unroll 1
  for (int box = 0; box < Boxes::kBoxes; ++box) {
    const uint32_t shared = boxes.template Next<1>();
#pragma unroll
    for (int known = 0; known < Boxes::kBoxes; ++known) {
      if (known != box) continue;
      Boxes::template Write<true>(accumulators, known, shared, Retyped<kWritten>(epilogue), thread);
    }
    ptx::WarpgroupBarrier(thread.barrier);
    VisitHopperOutput<Variant>(output, [&]<DType kD>() {
      StoreFinished<kD, Variant::kConfig.box_rows(), kIntegers>(
          shared, OfProduct(Retyped<kD>(epilogue), strides, at.product), Boxes::Place(at, box), m,
          n, thread);
    });
  }
}

}  // namespace gemm
