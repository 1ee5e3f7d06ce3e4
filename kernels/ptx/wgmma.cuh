// wgmma: a warpgroup multiplies tiles in shared memory, with the accumulators in
// registers (PTX ISA 8.0, sm_90a alone).
//
// A warpgroup is four warps; the first one's index is a multiple of four. It holds 64 x kN
// accumulators. With g = lane / 4 and t = 2 (lane % 4), a lane of warp w has in acc[4 j .. 4 j + 3]
//   (16 w + g, 8 j + t), the one right of it, and the same two 8 rows below.
//
// The order of a product:
// 1. Threads write the tiles by cp.async. Each waits for its own copies. A barrier.
// 2. WgmmaFence, where other instructions have used the accumulators.
// 3. Wgmma some times, then WgmmaCommit.
// 4. WgmmaWait for that group. Before it returns nothing may touch the accumulators
//    or the tiles.
//
// The PTX ISA asks for a proxy fence after writes through the generic proxy. CUTLASS
// (sm90_mma_multistage_gmma_ss_warpspecialized.hpp) and Triton's compiler have none after cp.async.
// Neither do we: it cost up to 15%. Other writes need it.
#pragma once

#include <cstdint>

#include "gemm/dtype.h"
#include "kernels/ptx/architecture.h"

namespace gemm::ptx {

// The layout of a matrix in shared memory, for one step over k: 32 bytes of each row. The
// matrix is cut into panels whose rows are `span` bytes wide (32, 64 or 128). In a panel
// the index of a 16-byte chunk in its row is XORed with the index of its 128-byte line. A
// panel starts on a multiple of 8 spans.
//
// K-major: rows run along k. `group_stride` bytes lie between groups of 8 rows;
//   one product reads a part of one panel.
// MN-major (16-bit types): rows run along m or n. `group_stride` lies between
//   groups of 8 rows, `panel_stride` between panels.
// The bits are those of CUTLASS's cute/arch/mma_sm90_desc.hpp.
struct WgmmaLayout {
  int span;
  int group_stride;
  int panel_stride;

  constexpr uint64_t bits() const {
    const uint64_t swizzle = span == 128 ? 1 : span == 64 ? 2 : 3;
    return swizzle << 62 | static_cast<uint64_t>(group_stride / 16) << 32 |
           static_cast<uint64_t>(panel_stride / 16) << 16;
  }
};

// The matrix of such a layout that begins at a shared address.
__device__ __forceinline__ uint64_t WgmmaMatrix(uint64_t layout_bits, uint32_t shared) {
  return layout_bits | (shared & 0x3FFFF) >> 4;
}

#if GEMM_HAS_WGMMA

// Orders uses of the accumulators by this warpgroup's threads before the next Wgmma.
__device__ __forceinline__ void WgmmaFence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Ends a group of products.
__device__ __forceinline__ void WgmmaCommit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most kPending groups of this warp are under way.
template <int kPending>
__device__ __forceinline__ void WgmmaWait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Keeps the compiler from moving uses of the accumulators over this point. The compiler
// does not see that products under way write them.
template <int kCount>
__device__ __forceinline__ void WgmmaPin(float (&acc)[kCount]) {
#pragma unroll
  for (int x = 0; x < kCount; ++x) asm volatile("" : "+f"(acc[x])::"memory");
}
template <int kCount>
__device__ __forceinline__ void WgmmaPin(uint32_t (&acc)[kCount]) {
#pragma unroll
  for (int x = 0; x < kCount; ++x) asm volatile("" : "+r"(acc[x])::"memory");
}
template <int kCount>
__device__ __forceinline__ void WgmmaPin(int32_t (&acc)[kCount]) {
#pragma unroll
  for (int x = 0; x < kCount; ++x) asm volatile("" : "+r"(acc[x])::"memory");
}

// The names of the first registers of an asm statement.
#define GEMM_REGISTERS_8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define GEMM_REGISTERS_16 GEMM_REGISTERS_8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define GEMM_REGISTERS_32 \
  GEMM_REGISTERS_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define GEMM_REGISTERS_48 \
  GEMM_REGISTERS_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define GEMM_REGISTERS_64 \
  GEMM_REGISTERS_48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define GEMM_REGISTERS_80 \
  GEMM_REGISTERS_64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define GEMM_REGISTERS_96 \
  GEMM_REGISTERS_80 ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define GEMM_REGISTERS_128                                                             \
  GEMM_REGISTERS_96                                                                    \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112," \
  "%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
// The values that they hold. `r` is their constraint.
#define GEMM_ACCUMULATORS_4(r, i) r(acc[i]), r(acc[i + 1]), r(acc[i + 2]), r(acc[i + 3])
#define GEMM_ACCUMULATORS_8(r, i) GEMM_ACCUMULATORS_4(r, i), GEMM_ACCUMULATORS_4(r, i + 4)
#define GEMM_ACCUMULATORS_16(r, i) GEMM_ACCUMULATORS_8(r, i), GEMM_ACCUMULATORS_8(r, i + 8)
#define GEMM_ACCUMULATORS_32(r, i) GEMM_ACCUMULATORS_16(r, i), GEMM_ACCUMULATORS_16(r, i + 16)
#define GEMM_ACCUMULATORS_48(r, i) GEMM_ACCUMULATORS_32(r, i), GEMM_ACCUMULATORS_16(r, i + 32)
#define GEMM_ACCUMULATORS_64(r, i) GEMM_ACCUMULATORS_32(r, i), GEMM_ACCUMULATORS_32(r, i + 32)
#define GEMM_ACCUMULATORS_80(r, i) GEMM_ACCUMULATORS_64(r, i), GEMM_ACCUMULATORS_16(r, i + 64)
#define GEMM_ACCUMULATORS_96(r, i) GEMM_ACCUMULATORS_64(r, i), GEMM_ACCUMULATORS_32(r, i + 64)
#define GEMM_ACCUMULATORS_128(r, i) GEMM_ACCUMULATORS_64(r, i), GEMM_ACCUMULATORS_64(r, i + 64)

// One instruction with `count` registers of accumulators. `A`, `B` and `C` are the names of the
// operands behind them, `factors` what follows these.
#define GEMM_WGMMA_WITH(factors, shape, types, r, count, A, B, C)                      \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " C                               \
               ", 0;\n"                                                                \
               "wgmma.mma_async.sync.aligned." shape types " {" GEMM_REGISTERS_##count \
               "}, " A ", " B ", add" factors ";\n}"                                   \
               : GEMM_ACCUMULATORS_##count(r, 0)                                       \
               : "l"(a), "l"(b), "r"(static_cast<int>(add)))
#define GEMM_WGMMA(shape, types, transposes, r, count, A, B, C) \
  GEMM_WGMMA_WITH(", 1, 1" transposes, shape, types, r, count, A, B, C)

// Every width for one pair of types, with f32 accumulators.
#define GEMM_WGMMA_OF(k, types, transposes)                                                \
  if constexpr (kCount == 8) {                                                             \
    GEMM_WGMMA("m64n16" k, ".f32." types, transposes, "+f", 8, "%8", "%9", "%10");         \
  } else if constexpr (kCount == 16) {                                                     \
    GEMM_WGMMA("m64n32" k, ".f32." types, transposes, "+f", 16, "%16", "%17", "%18");      \
  } else if constexpr (kCount == 32) {                                                     \
    GEMM_WGMMA("m64n64" k, ".f32." types, transposes, "+f", 32, "%32", "%33", "%34");      \
  } else if constexpr (kCount == 64) {                                                     \
    GEMM_WGMMA("m64n128" k, ".f32." types, transposes, "+f", 64, "%64", "%65", "%66");     \
  } else if constexpr (kCount == 80) {                                                     \
    GEMM_WGMMA("m64n160" k, ".f32." types, transposes, "+f", 80, "%80", "%81", "%82");     \
  } else if constexpr (kCount == 96) {                                                     \
    GEMM_WGMMA("m64n192" k, ".f32." types, transposes, "+f", 96, "%96", "%97", "%98");     \
  } else {                                                                                 \
    static_assert(kCount == 128);                                                          \
    GEMM_WGMMA("m64n256" k, ".f32." types, transposes, "+f", 128, "%128", "%129", "%130"); \
  }

// The same with f16 accumulators.
#define GEMM_WGMMA_F16_OF(transposes)                                                    \
  if constexpr (kCount == 16) {                                                          \
    GEMM_WGMMA("m64n64k16", ".f16.f16.f16", transposes, "+r", 16, "%16", "%17", "%18");  \
  } else if constexpr (kCount == 32) {                                                   \
    GEMM_WGMMA("m64n128k16", ".f16.f16.f16", transposes, "+r", 32, "%32", "%33", "%34"); \
  } else if constexpr (kCount == 48) {                                                   \
    GEMM_WGMMA("m64n192k16", ".f16.f16.f16", transposes, "+r", 48, "%48", "%49", "%50"); \
  } else {                                                                               \
    static_assert(kCount == 64);                                                         \
    GEMM_WGMMA("m64n256k16", ".f16.f16.f16", transposes, "+r", 64, "%64", "%65", "%66"); \
  }

// Every layout of 16-bit operands. `OF(transposes)` is one of them.
#define GEMM_WGMMA_LAYOUTS(OF)            \
  if constexpr (kMnMajorA && kMnMajorB) { \
    OF(", 1, 1")                          \
  } else if constexpr (kMnMajorA) {       \
    OF(", 1, 0")                          \
  } else if constexpr (kMnMajorB) {       \
    OF(", 0, 1")                          \
  } else {                                \
    OF(", 0, 0")                          \
  }

// Starts acc = A B + (add ? acc : 0) over 32 bytes of k. A has 64 rows, B has kN = 2 kCount
// columns. Each is K-major or, where kMnMajorA or kMnMajorB, MN-major. Operands of type kF32 are
// TF32 numbers.
template <DType kA, DType kB, bool kMnMajorB, bool kMnMajorA = false, int kCount>
__device__ __forceinline__ void Wgmma(float (&acc)[kCount], uint64_t a, uint64_t b, bool add) {
  static_assert(SizeOf(kA) == 2 || !(kMnMajorA || kMnMajorB));
  if constexpr (kA == DType::kF16) {
#define GEMM_WGMMA_F16(transposes) GEMM_WGMMA_OF("k16", "f16.f16", transposes)
    GEMM_WGMMA_LAYOUTS(GEMM_WGMMA_F16)
#undef GEMM_WGMMA_F16
  } else if constexpr (kA == DType::kBF16) {
#define GEMM_WGMMA_BF16(transposes) GEMM_WGMMA_OF("k16", "bf16.bf16", transposes)
    GEMM_WGMMA_LAYOUTS(GEMM_WGMMA_BF16)
#undef GEMM_WGMMA_BF16
  } else if constexpr (kA == DType::kF32) {
    GEMM_WGMMA_OF("k8", "tf32.tf32", "")
  } else if constexpr (kA == DType::kE4M3 && kB == DType::kE4M3) {
    GEMM_WGMMA_OF("k32", "e4m3.e4m3", "")
  } else if constexpr (kA == DType::kE4M3) {
    GEMM_WGMMA_OF("k32", "e4m3.e5m2", "")
  } else if constexpr (kB == DType::kE4M3) {
    GEMM_WGMMA_OF("k32", "e5m2.e4m3", "")
  } else {
    GEMM_WGMMA_OF("k32", "e5m2.e5m2", "")
  }
}

// The same with f16 accumulators, two in a register. For an even x, the accumulators that floats
// have in acc[x] and acc[x + 1] are both in acc[x / 2]. B has 4 kCount columns.
template <DType kA, DType kB, bool kMnMajorB, bool kMnMajorA = false, int kCount>
__device__ __forceinline__ void Wgmma(uint32_t (&acc)[kCount], uint64_t a, uint64_t b, bool add) {
  static_assert(kA == DType::kF16 && kB == DType::kF16);
  GEMM_WGMMA_LAYOUTS(GEMM_WGMMA_F16_OF)
}

// The same for s8, with accumulators that wrap.
template <DType kA, DType kB, bool kMnMajorB, bool kMnMajorA = false, int kCount>
__device__ __forceinline__ void Wgmma(int32_t (&acc)[kCount], uint64_t a, uint64_t b, bool add) {
  static_assert(kA == DType::kS8 && kB == DType::kS8 && !kMnMajorA && !kMnMajorB);
#define GEMM_WGMMA_S8(n, count, A, B, C) \
  GEMM_WGMMA_WITH("", "m64n" n "k32", ".s32.s8.s8", "+r", count, A, B, C)
  if constexpr (kCount == 8) {
    GEMM_WGMMA_S8("16", 8, "%8", "%9", "%10");
  } else if constexpr (kCount == 16) {
    GEMM_WGMMA_S8("32", 16, "%16", "%17", "%18");
  } else if constexpr (kCount == 32) {
    GEMM_WGMMA_S8("64", 32, "%32", "%33", "%34");
  } else if constexpr (kCount == 64) {
    GEMM_WGMMA_S8("128", 64, "%64", "%65", "%66");
  } else if constexpr (kCount == 96) {
    GEMM_WGMMA_S8("192", 96, "%96", "%97", "%98");
  } else {
    static_assert(kCount == 128);
    GEMM_WGMMA_S8("256", 128, "%128", "%129", "%130");
  }
#undef GEMM_WGMMA_S8
}

// One instruction with A in registers.
#define GEMM_WGMMA_RS(shape, count, A0, A1, A2, A3, B, C)                                      \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " C                                       \
               ", 0;\n"                                                                        \
               "wgmma.mma_async.sync.aligned." shape ".f32.tf32.tf32 {" GEMM_REGISTERS_##count \
               "}, {" A0 ", " A1 ", " A2 ", " A3 "}, " B ", add, 1, 1;\n}"                     \
               : GEMM_ACCUMULATORS_##count("+f", 0)                                            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)))

// The same for TF32 with A in registers, B K-major. With g and t / 2 of a lane as above, it has in
// a[0 .. 3] (16 w + g, t / 2), the element 8 rows below, and the same two four columns further.
// Nothing may write them before WgmmaWait returns. Their last 13 bits are ignored.
template <int kCount>
__device__ __forceinline__ void WgmmaOfRegisters(float (&acc)[kCount], const uint32_t (&a)[4],
                                                 uint64_t b, bool add) {
  if constexpr (kCount == 32) {
    GEMM_WGMMA_RS("m64n64k8", 32, "%32", "%33", "%34", "%35", "%36", "%37");
  } else {
    static_assert(kCount == 64);
    GEMM_WGMMA_RS("m64n128k8", 64, "%64", "%65", "%66", "%67", "%68", "%69");
  }
}

#undef GEMM_WGMMA_RS
#undef GEMM_WGMMA_LAYOUTS
#undef GEMM_WGMMA_F16_OF
#undef GEMM_WGMMA_OF
#undef GEMM_WGMMA
#undef GEMM_WGMMA_WITH
#undef GEMM_ACCUMULATORS_128
#undef GEMM_ACCUMULATORS_96
#undef GEMM_ACCUMULATORS_80
#undef GEMM_ACCUMULATORS_64
#undef GEMM_ACCUMULATORS_48
#undef GEMM_ACCUMULATORS_32
#undef GEMM_ACCUMULATORS_16
#undef GEMM_ACCUMULATORS_8
#undef GEMM_ACCUMULATORS_4
#undef GEMM_REGISTERS_128
#undef GEMM_REGISTERS_96
#undef GEMM_REGISTERS_80
#undef GEMM_REGISTERS_64
#undef GEMM_REGISTERS_48
#undef GEMM_REGISTERS_32
#undef GEMM_REGISTERS_16
#undef GEMM_REGISTERS_8

#endif  // GEMM_HAS_WGMMA

}  // namespace gemm::ptx
