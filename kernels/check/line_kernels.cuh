// Sums along the lines of a matrix on the GPU. A line runs along a row of the memory, or
// across its rows.
#pragma once

#include <cuda_fp8.h>

#include <cstdint>
#include <cstring>

#include "kernels/check/line_sums.h"
#include "kernels/numeric/device_element.cuh"

namespace gemm {

// An element as f64, which holds every type exactly.
template <DType kType>
struct CheckElement {
  using Storage = typename DeviceElement<kType>::Type;
  __device__ static double Load(Storage x) {
    return static_cast<double>(DeviceElement<kType>::Load(x));
  }
};
template <__nv_fp8_interpretation_t kFormat>
struct Fp8CheckElement {
  using Storage = __nv_fp8_storage_t;
  __device__ static double Load(Storage x) {
    return static_cast<double>(__half2float(__half(__nv_cvt_fp8_to_halfraw(x, kFormat))));
  }
};
template <>
struct CheckElement<DType::kE4M3> : Fp8CheckElement<__NV_E4M3> {};
template <>
struct CheckElement<DType::kE5M2> : Fp8CheckElement<__NV_E5M2> {};
template <>
struct CheckElement<DType::kS8> {
  using Storage = int8_t;
  __device__ static double Load(Storage x) { return x; }
};

// `lines` lines of `length` elements. Every row of the memory starts on a 16-byte boundary.
struct LineMatrix {
  const void* data;
  int64_t ld;  // elements from one row of the memory to the next
  int64_t lines;
  int64_t length;
};

// Weights by position. Null: `low` of 0, `magnitude` of 1.
struct DeviceWeights {
  const double* value;
  const double* low;
  const double* magnitude;

  __device__ double Low(int64_t i) const { return low == nullptr ? 0 : low[i]; }
  __device__ double Magnitude(int64_t i) const { return magnitude == nullptr ? 1 : magnitude[i]; }
};

inline constexpr int kLineThreads = 128;
// Lines that share the weights which a thread has loaded.
inline constexpr int kLinesOfABlock = 4;
// Lines of a thread, where they run across the rows.
inline constexpr int kLinesOfAThread = 2;

template <class Sum>
__device__ LineSums SumOfWarp(LineAdder<Sum> adder) {
  constexpr unsigned kAll = 0xffffffff;
  for (int step = 16; step > 0; step /= 2) {
    const LineSums own = adder.sums();
    adder.Join({.dot = __shfl_xor_sync(kAll, own.dot, step),
                .low = __shfl_xor_sync(kAll, own.low, step),
                .weighted = __shfl_xor_sync(kAll, own.weighted, step),
                .magnitudes = __shfl_xor_sync(kAll, own.magnitudes, step),
                .squares = __shfl_xor_sync(kAll, own.squares, step)});
  }
  return adder.sums();
}

// `count` elements from `from` on, and zeros after them. A whole run is one load: it starts on a
// boundary of its size.
template <int kRun, class Storage>
__device__ void LoadRun(const Storage* from, int count, Storage (&to)[kRun]) {
  struct alignas(sizeof(Storage) * kRun) Word {
    Storage elements[kRun];
  };
  if (count == kRun) {
    const Word word = *reinterpret_cast<const Word*>(from);
    memcpy(to, word.elements, sizeof(to));
    return;
  }
#pragma unroll
  for (int i = 0; i < kRun; ++i) to[i] = i < count ? from[i] : Storage{};
}

// One block for kLinesOfABlock lines, each a row of the memory.
template <DType kType, class Sum>
__global__ void __launch_bounds__(kLineThreads)
    SumAlong(LineMatrix x, DeviceWeights weights, LineSums* out) {
  using Element = CheckElement<kType>;
  using Storage = typename Element::Storage;
  constexpr int kRun = sizeof(Storage) == 1 ? 8 : 16 / sizeof(Storage);
  constexpr int kWarps = kLineThreads / 32;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kLinesOfABlock;
  const Storage* row[kLinesOfABlock];
#pragma unroll
  for (int line = 0; line < kLinesOfABlock; ++line) {
    // Lines beyond the last are the last again, and are not written.
    const int64_t index = first + line < x.lines ? first + line : x.lines - 1;
    row[line] = static_cast<const Storage*>(x.data) + index * x.ld;
  }
  LineAdder<Sum> adders[kLinesOfABlock];
  for (int64_t at = threadIdx.x * kRun; at < x.length; at += kLineThreads * kRun) {
    const int count = x.length - at < kRun ? static_cast<int>(x.length - at) : kRun;
    Storage run[kLinesOfABlock][kRun];
#pragma unroll
    for (int line = 0; line < kLinesOfABlock; ++line) LoadRun(row[line] + at, count, run[line]);
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      // Beyond the end the elements are zeros: any weight will do.
      const int64_t l = i < count ? at + i : at;
      const double value = weights.value[l], low = weights.Low(l), magnitude = weights.Magnitude(l);
#pragma unroll
      for (int line = 0; line < kLinesOfABlock; ++line) {
        adders[line].Add(Element::Load(run[line][i]), value, low, magnitude);
      }
    }
  }
  __shared__ LineSums of_warps[kLinesOfABlock][kWarps];
#pragma unroll
  for (int line = 0; line < kLinesOfABlock; ++line) {
    const LineSums sums = SumOfWarp(adders[line]);
    if (threadIdx.x % 32 == 0) of_warps[line][threadIdx.x / 32] = sums;
  }
  __syncthreads();
  const int line = threadIdx.x;
  if (line >= kLinesOfABlock || first + line >= x.lines) return;
  LineAdder<Sum> all;
  for (int warp = 0; warp < kWarps; ++warp) all.Join(of_warps[line][warp]);
  out[first + line] = all.sums();
}

// Lines across the rows of the memory: element `l` of line `i` lies in row `l`. The block
// (x, y) has kLineThreads * kLinesOfAThread lines, and part y of gridDim.y of their lengths. The
// parts lie one after the other in `out`.
template <DType kType, class Sum>
__global__ void __launch_bounds__(kLineThreads)
    SumAcross(LineMatrix x, DeviceWeights weights, LineSums* out) {
  using Element = CheckElement<kType>;
  using Storage = typename Element::Storage;
  const int64_t first =
      (static_cast<int64_t>(blockIdx.x) * kLineThreads + threadIdx.x) * kLinesOfAThread;
  if (first >= x.lines) return;
  const int count =
      x.lines - first < kLinesOfAThread ? static_cast<int>(x.lines - first) : kLinesOfAThread;
  const int64_t begin = x.length * blockIdx.y / gridDim.y;
  const int64_t end = x.length * (blockIdx.y + 1) / gridDim.y;
  const Storage* const column = static_cast<const Storage*>(x.data) + first;
  LineAdder<Sum> adders[kLinesOfAThread];
#pragma unroll 4
  for (int64_t l = begin; l < end; ++l) {
    Storage pair[kLinesOfAThread];
    LoadRun(column + l * x.ld, count, pair);
    const double value = weights.value[l], low = weights.Low(l), magnitude = weights.Magnitude(l);
#pragma unroll
    for (int i = 0; i < kLinesOfAThread; ++i) {
      adders[i].Add(Element::Load(pair[i]), value, low, magnitude);
    }
  }
#pragma unroll
  for (int i = 0; i < kLinesOfAThread; ++i) {
    if (i < count) out[blockIdx.y * x.lines + first + i] = adders[i].sums();
  }
}

// The sums of line `i` over all parts. They stay in place, as the first part.
template <class Sum>
__device__ LineSums JoinParts(LineSums* parts, int64_t lines, int splits, int64_t i) {
  LineAdder<Sum> all;
  for (int split = 0; split < splits; ++split) all.Join(parts[split * lines + i]);
  parts[i] = all.sums();
  return parts[i];
}

}  // namespace gemm
