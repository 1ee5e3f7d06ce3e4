// Element types and arithmetic of the GEMM kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace gemm {

enum class DType : uint8_t { kF64, kF32, kF16, kBF16, kE4M3, kE5M2, kS8, kS32 };
inline constexpr int kDTypeCount = 8;

// The accumulators' type. kTF32 rounds f32 operands to TF32 and accumulates in f32. kF32x3 splits
// each f32 operand into a sum of two TF32 numbers, adds up three of their four products, and
// accumulates in f32. Its error is that of f32, or near it (error_bound.h). kS32 takes s8 operands,
// and its accumulators wrap (gemm/problem.h).
enum class Compute : uint8_t { kF64, kF32, kTF32, kF16, kF32x3, kS32 };
inline constexpr int kComputeCount = 6;

// Bytes of one element.
constexpr size_t SizeOf(DType type) {
  switch (type) {
    case DType::kF64:
      return 8;
    case DType::kF32:
    case DType::kS32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kE4M3:
    case DType::kE5M2:
    case DType::kS8:
      return 1;
  }
  return 0;
}

constexpr bool IsFp8(DType type) { return type == DType::kE4M3 || type == DType::kE5M2; }

// Unit roundoff: the largest relative error of rounding a normal number to
// `type`. 0 for the integer types.
constexpr double UnitRoundoff(DType type) {
  switch (type) {
    case DType::kF64:
      return 0x1p-53;
    case DType::kF32:
      return 0x1p-24;
    case DType::kF16:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kE4M3:
      return 0x1p-4;
    case DType::kE5M2:
      return 0x1p-3;
    case DType::kS8:
    case DType::kS32:
      return 0;
  }
  return 0;
}

// Lower-case names: "f32", "bf16", "e4m3", "s8"; "tf32", "f32x3", "s32".
absl::string_view Name(DType type);
absl::string_view Name(Compute compute);
std::optional<DType> ParseDType(absl::string_view name);
std::optional<Compute> ParseCompute(absl::string_view name);

}  // namespace gemm
