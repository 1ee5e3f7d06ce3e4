// The epilogue on the GPU: act(alpha * accumulator + beta * C + bias), rounded to D's
// type. Every kernel of our own ends in it.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gemm/problem.h"
#include "kernels/epilogue/batch_strides.h"
#include "kernels/numeric/activation.h"
#include "kernels/numeric/device_element.cuh"

namespace gemm {

// Writes up to 16 bytes at once. The compiler may split an assignment into elements.
template <class Word>
__device__ __forceinline__ void StoreWord(Word* to, const Word& word) {
  __stwb(to, word);
}

// A kernel argument. Its branches are uniform over the grid.
template <DType kD>
struct Epilogue {
  using Element = DeviceElement<kD>;
  using Type = typename Element::Type;
  using Scalar = typename Element::Scalar;

  Type* d;
  int64_t ldd;
  const Type* c;  // may be d
  int64_t ldc;
  const Type* bias;
  Scalar alpha;
  Scalar beta;  // 0: c is not read
  Scalar leaky_slope;
  BiasAxis bias_axis;
  Activation activation;

  // The value of element (i, j) of D from its accumulator, before rounding.
  __device__ Scalar Value(Scalar accumulator, int64_t i, int64_t j) const {
    Scalar value = alpha * accumulator;
    if (beta != Scalar(0)) value += beta * Element::Load(c[i * ldc + j]);
    if (bias_axis == BiasAxis::kColumns) value += Element::Load(bias[j]);
    if (bias_axis == BiasAxis::kRows) value += Element::Load(bias[i]);
    return Activate(activation, leaky_slope, value);
  }

  // Writes element (i, j) of D.
  __device__ void Store(Scalar accumulator, int64_t i, int64_t j) const {
    d[i * ldd + j] = Element::Store(Value(accumulator, i, j));
  }

  // Whether D is alpha times the accumulators, as in most products. A kernel with a path of
  // its own for those does not fetch the long code of the general epilogue.
  __device__ bool OnlyScales() const {
    return beta == Scalar(0) && bias_axis == BiasAxis::kNone && activation == Activation::kNone;
  }

  // kCount neighbours of a row, written as one vector.
  template <int kCount>
  struct alignas(kCount * sizeof(Type)) Run {
    Type elements[kCount];
  };
  template <size_t kBytes>
  using RunWord = std::conditional_t<
      kBytes == 16, uint4,
      std::conditional_t<kBytes == 8, uint2, std::conditional_t<kBytes == 4, uint32_t, Type>>>;

  // Writes elements (i, j) to (i, j + kCount - 1), without those beyond the n columns. j is a
  // multiple of kCount, and a run is at most 16 bytes.
  template <int kCount>
  __device__ void StoreRun(const Scalar (&accumulators)[kCount], int64_t i, int64_t j,
                           int64_t n) const {
    static_assert(kCount * sizeof(Type) <= kRowAlignment);
    if (j + kCount > n) {
      for (int x = 0; x < kCount && j + x < n; ++x) Store(accumulators[x], i, j + x);
      return;
    }
    Scalar values[kCount];
#pragma unroll
    for (int x = 0; x < kCount; ++x) values[x] = alpha * accumulators[x];
    if (beta != Scalar(0)) {
      const auto old = *reinterpret_cast<const Run<kCount>*>(c + i * ldc + j);
#pragma unroll
      for (int x = 0; x < kCount; ++x) values[x] += beta * Element::Load(old.elements[x]);
    }
    if (bias_axis != BiasAxis::kNone) {
#pragma unroll
      for (int x = 0; x < kCount; ++x) {
        values[x] += Element::Load(bias[bias_axis == BiasAxis::kColumns ? j + x : i]);
      }
    }
    if (activation != Activation::kNone) {
#pragma unroll
      for (int x = 0; x < kCount; ++x) values[x] = Activate(activation, leaky_slope, values[x]);
    }
    StoreValues(values, i, j);
  }

  // Two neighbours of D. Requires OnlyScales() and 16-bit elements.
  __device__ uint32_t ScaledPair(Scalar low, Scalar high) const {
    static_assert(sizeof(Type) == 2);
    const Run<2> pair = {Element::Store(alpha * low), Element::Store(alpha * high)};
    uint32_t word;
    memcpy(&word, &pair, sizeof(word));
    return word;
  }

  // Writes 16 bytes of D, from element (i, j) on.
  __device__ void StoreBytes(const uint4& bytes, int64_t i, int64_t j) const {
    StoreWord(reinterpret_cast<uint4*>(d + i * ldd + j), bytes);
  }

  // StoreRun for a run within D. Requires OnlyScales().
  template <int kCount>
  __device__ void StoreScaledRun(const Scalar (&accumulators)[kCount], int64_t i, int64_t j) const {
    Scalar values[kCount];
#pragma unroll
    for (int x = 0; x < kCount; ++x) values[x] = alpha * accumulators[x];
    StoreValues(values, i, j);
  }

 private:
  template <int kCount>
  __device__ void StoreValues(const Scalar (&values)[kCount], int64_t i, int64_t j) const {
    Run<kCount> run;
#pragma unroll
    for (int x = 0; x < kCount; ++x) run.elements[x] = Element::Store(values[x]);
    RunWord<sizeof(run)> word;
    memcpy(&word, &run, sizeof(run));
    StoreWord(reinterpret_cast<RunWord<sizeof(run)>*>(d + i * ldd + j), word);
  }
};

template <DType kD>
Epilogue<kD> MakeEpilogue(const Problem& problem, const Operands& operands) {
  using Type = typename Epilogue<kD>::Type;
  using Scalar = typename Epilogue<kD>::Scalar;
  return {
      .d = static_cast<Type*>(operands.d),
      .ldd = operands.ldd,
      .c = static_cast<const Type*>(operands.c),
      .ldc = operands.ldc,
      .bias = static_cast<const Type*>(operands.bias),
      .alpha = static_cast<Scalar>(problem.alpha),
      .beta = static_cast<Scalar>(problem.beta),
      .leaky_slope = static_cast<Scalar>(problem.leaky_slope),
      .bias_axis = problem.bias,
      .activation = problem.activation,
  };
}

// The epilogue of a product of a batch, from that of the first one.
template <DType kD>
__device__ __forceinline__ Epilogue<kD> OfProduct(Epilogue<kD> epilogue,
                                                  const BatchStrides& strides, int64_t product) {
  epilogue.c += product * strides.c;
  epilogue.bias += product * strides.bias;
  epilogue.d += product * strides.d;
  return epilogue;
}

// The same epilogue for elements of another type.
template <DType kTo, DType kFrom>
__device__ __forceinline__ Epilogue<kTo> Retyped(const Epilogue<kFrom>& from) {
  using Type = typename Epilogue<kTo>::Type;
  using Scalar = typename Epilogue<kTo>::Scalar;
  return {
      .d = reinterpret_cast<Type*>(from.d),
      .ldd = from.ldd,
      .c = reinterpret_cast<const Type*>(from.c),
      .ldc = from.ldc,
      .bias = reinterpret_cast<const Type*>(from.bias),
      .alpha = static_cast<Scalar>(from.alpha),
      .beta = static_cast<Scalar>(from.beta),
      .leaky_slope = static_cast<Scalar>(from.leaky_slope),
      .bias_axis = from.bias_axis,
      .activation = from.activation,
  };
}

}  // namespace gemm
