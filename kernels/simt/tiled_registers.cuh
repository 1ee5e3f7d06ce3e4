// The registers of a thread of a thread-tiled kernel: strips of operands, and accumulators.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/numeric/device_element.cuh"
#include "kernels/simt/tiled_layout.h"

namespace gemm {

// The type that moves kBytes at once.
template <int kBytes>
struct WordsType;
template <>
struct WordsType<4> {
  using Type = uint32_t;
};
template <>
struct WordsType<8> {
  using Type = uint2;
};
template <>
struct WordsType<16> {
  using Type = uint4;
};

// kCount neighbours. Halves stay packed in pairs.
template <class Element, int kCount>
struct Strip;

template <int kCount>
struct Strip<float, kCount> {
  float values[kCount];

  __device__ void Load(const float* from) {
    static_assert(kCount % 4 == 0);
#pragma unroll
    for (int x = 0; x < kCount; x += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + x);
      values[x] = four.x, values[x + 1] = four.y, values[x + 2] = four.z, values[x + 3] = four.w;
    }
  }
  __device__ float operator[](int x) const { return values[x]; }
};

template <int kCount>
struct Strip<__half, kCount> {
  __half2 pairs[kCount / 2];

  __device__ void Load(const __half* from) {
    constexpr int kBytes = kCount * 2 < 16 ? kCount * 2 : 16;
    using Words = typename WordsType<kBytes>::Type;
#pragma unroll
    for (int x = 0; x < kCount * 2; x += kBytes) {
      const Words words = *reinterpret_cast<const Words*>(from + x / 2);
      memcpy(&pairs[x / 4], &words, kBytes);
    }
  }
  // Element x twice.
  __device__ __half2 Twice(int x) const {
    return x % 2 == 0 ? __low2half2(pairs[x / 2]) : __high2half2(pairs[x / 2]);
  }
};

// A thread's kRows x kCols accumulators. Add() adds element x of `a`, times the strip `b`,
// to row i from column `first` on.
template <class Element, int kRows, int kCols, bool kPacked>
struct Accumulators;

template <int kRows, int kCols, bool kPacked>
struct Accumulators<float, kRows, kCols, kPacked> {
  float values[kRows][kCols] = {};

  template <class Column, int kCount>
  __device__ void Add(int i, const Column& a, int x, const Strip<float, kCount>& b, int first) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      values[i][first + j] = fmaf(a[x], b[j], values[i][first + j]);
    }
  }
  __device__ float At(int i, int j) const { return values[i][j]; }
};

// One half in a register and an instruction: the low one. (The compiler would make pairs
// of scalar halves by itself.)
template <int kRows, int kCols>
struct Accumulators<__half, kRows, kCols, false> {
  __half2 values[kRows][kCols] = {};

  template <class Column, int kCount>
  __device__ void Add(int i, const Column& a, int x, const Strip<__half, kCount>& b, int first) {
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      values[i][first + j] = __hfma2(a.Twice(x), b.Twice(j), values[i][first + j]);
    }
  }
  __device__ float At(int i, int j) const { return __low2float(values[i][j]); }
};

// Two halves in a register and an instruction.
template <int kRows, int kCols>
struct Accumulators<__half, kRows, kCols, true> {
  __half2 values[kRows][kCols / 2] = {};

  template <class Column, int kCount>
  __device__ void Add(int i, const Column& a, int x, const Strip<__half, kCount>& b, int first) {
#pragma unroll
    for (int j = 0; j < kCount / 2; ++j) {
      values[i][first / 2 + j] = __hfma2(a.Twice(x), b.pairs[j], values[i][first / 2 + j]);
    }
  }
  __device__ float At(int i, int j) const {
    return j % 2 == 0 ? __low2float(values[i][j / 2]) : __high2float(values[i][j / 2]);
  }
};

}  // namespace gemm
