// The table of the CUDA-core family.
#include <iterator>

#include "kernels/core/families.h"
#include "kernels/core/rows.h"
#include "kernels/simt/naive.cuh"

namespace gemm {
namespace naive {

struct Row {
  absl::string_view name;
  absl::string_view summary;
  NaiveConfig config;
};

constexpr Row kTable[] = {
    {"dgemm_naive_f64", "one thread, one element", {DType::kF64, DType::kF64}},
    {"sgemm_naive_f32", "one thread, one element", {DType::kF32, DType::kF32}},
    {"hgemm_naive_f16", "one thread, one element; sums in f16", {DType::kF16, DType::kF16}},
    {"bgemm_naive_bf16", "one thread, one element; sums in f32", {DType::kBF16, DType::kF32}},
};

template <size_t kIndex>
struct Variant {
  static constexpr NaiveConfig kConfig = kTable[kIndex].config;
  using Operand = DeviceElement<kConfig.type>;
};

}  // namespace naive

namespace {

constexpr Compute ComputeOf(DType accumulate) {
  switch (accumulate) {
    case DType::kF64:
      return Compute::kF64;
    case DType::kF16:
      return Compute::kF16;
    default:
      return Compute::kF32;
  }
}

template <NaiveConfig kConfig>
constexpr Types kNaiveTypes[] = {
    {kConfig.type, kConfig.type, kConfig.type, ComputeOf(kConfig.accumulate)}};

constexpr auto kRows = MakeRows<std::size(naive::kTable)>([](auto index) {
  constexpr const naive::Row& kRow = naive::kTable[index];
  constexpr NaiveConfig kConfig = kRow.config;
  return Kernel{
      .name = kRow.name,
      .family = "simt",
      .summary = kRow.summary,
      .types = kNaiveTypes<kConfig>,
      .tile_m = kConfig.tile_m,
      .tile_n = kConfig.tile_n,
      .tile_k = 1,
      .stages = 1,
      .threads = kConfig.threads(),
      .auto_rank = 10,
      .launch = LaunchNaive<naive::Variant<index>>,
  };
});

}  // namespace

absl::Span<const Kernel> SimtRows() { return kRows; }

}  // namespace gemm
