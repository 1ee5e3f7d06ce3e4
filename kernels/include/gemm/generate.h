// Matrices drawn from a seed, the same bits on every device.
//
// u(t) is the top 53 bits of SplitMix64(seed + (t + 1) * 0x9E3779B97F4A7C15) (Steele, Lea, Flood,
// OOPSLA 2014), as a fraction of 1. Uniform is low + (high - low) * u(i * cols + j). Normal is
// Box-Muller, mean + stddev * sqrt(-2 log(1 - u(2t))) * cos(2 pi u(2t + 1)) at t = i * cols + j.
// All of it is in f64, from add, multiply, divide and square root alone, without contraction. So
// the host and the GPU round alike. The result is rounded to f32 and then to the element type, to
// nearest even. For s8 it is clamped to -128 to 127.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "gemm/dtype.h"
#include "gemm/kernel.h"

namespace gemm {

enum class Distribution : uint8_t { kUniform, kNormal };

struct GeneratorSpec {
  uint64_t seed = 0;
  Distribution distribution = Distribution::kUniform;
  double low_or_mean = 0;
  double high_or_stddev = 1;
};

// True if the elements x and -x are equally likely.
constexpr bool IsSymmetric(const GeneratorSpec& spec) {
  return spec.distribution == Distribution::kUniform ? spec.low_or_mean == -spec.high_or_stddev
                                                     : spec.low_or_mean == 0;
}

// A matrix to fill. `lines` run along the storage order: rows of a row-major
// matrix, columns of a column-major one. Element (i, j) of the logical matrix
// has the index i * cols + j in either.
struct GeneratorTarget {
  void* data = nullptr;
  DType type = DType::kF32;  // f64, f32, f16, bf16, e4m3, e5m2, s8
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t pitch_bytes = 0;  // from one line to the next
  bool column_major = false;
};

// UNIMPLEMENTED for a type that cannot be generated, with those that can.
absl::Status CheckGenerated(DType type);

// Fills host memory before it returns. UNIMPLEMENTED for other types. CANCELLED, with a part of it
// filled, soon after `stop` is set. `stop` may be null.
absl::Status GenerateHost(const GeneratorSpec& spec, const GeneratorTarget& target,
                          const std::atomic<bool>* stop = nullptr);

// Enqueues the fill of device memory. UNAVAILABLE in a build without CUDA.
absl::Status GenerateCuda(const GeneratorSpec& spec, const GeneratorTarget& target,
                          CUstream_st* stream);

}  // namespace gemm
