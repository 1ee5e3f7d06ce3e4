#include "gemm/dtype.h"

#include <array>

namespace gemm {
namespace {

// In the order of the enumerations.
constexpr std::array<absl::string_view, kDTypeCount> kDTypeNames = {"f64",  "f32",  "f16", "bf16",
                                                                    "e4m3", "e5m2", "s8",  "s32"};
constexpr std::array<absl::string_view, kComputeCount> kComputeNames = {"f64", "f32",   "tf32",
                                                                        "f16", "f32x3", "s32"};

template <class Enum, size_t kCount>
std::optional<Enum> Parse(const std::array<absl::string_view, kCount>& names,
                          absl::string_view name) {
  for (size_t i = 0; i < kCount; ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

absl::string_view Name(DType type) { return kDTypeNames[static_cast<size_t>(type)]; }

absl::string_view Name(Compute compute) { return kComputeNames[static_cast<size_t>(compute)]; }

std::optional<DType> ParseDType(absl::string_view name) { return Parse<DType>(kDTypeNames, name); }

std::optional<Compute> ParseCompute(absl::string_view name) {
  return Parse<Compute>(kComputeNames, name);
}

}  // namespace gemm
