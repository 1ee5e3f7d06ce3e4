// The CUDA-core rows in which a thread computes one element.
#include <iterator>

#include "kernels/core/families.h"
#include "kernels/core/rows.h"
#include "kernels/simt/naive.cuh"
#include "kernels/simt/sliced_k.cuh"

namespace gemm {
namespace naive {

struct Row {
  absl::string_view name;
  absl::string_view summary;
  NaiveConfig config;
};

constexpr Row kTable[] = {
    {"dgemm_naive_f64",
     "one thread, one element",
     {.type = DType::kF64, .accumulate = DType::kF64}},
    {"sgemm_naive_f32",
     "one thread, one element",
     {.type = DType::kF32, .accumulate = DType::kF32}},
    {"hgemm_naive_f16",
     "one thread, one element; f16 accumulators",
     {.type = DType::kF16, .accumulate = DType::kF16}},
    {"bgemm_naive_bf16",
     "one thread, one element; f32 accumulators",
     {.type = DType::kBF16, .accumulate = DType::kF32}},
};

template <size_t kIndex>
struct Variant {
  static constexpr NaiveConfig kConfig = kTable[kIndex].config;
  using Operand = DeviceElement<kConfig.type>;
};

}  // namespace naive

namespace sliced_k {

struct Row {
  absl::string_view name;
  absl::string_view summary;
  SlicedKConfig config;
};

constexpr Row kTable[] = {
    {"sgemm_sliced_k_f32", "k-tiles in shared memory", {.type = DType::kF32}},
    {"hgemm_sliced_k_f16", "k-tiles in shared memory; f16 accumulators", {.type = DType::kF16}},
};

template <size_t kIndex>
struct Variant {
  static constexpr SlicedKConfig kConfig = kTable[kIndex].config;
  using Operand = DeviceElement<kConfig.type>;
};

}  // namespace sliced_k

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

template <DType kType, DType kAccumulate>
constexpr Types kTypes[] = {{kType, kType, kType, ComputeOf(kAccumulate)}};

constexpr auto kNaive = MakeRows<std::size(naive::kTable)>([](auto index) {
  constexpr const naive::Row& kRow = naive::kTable[index];
  constexpr NaiveConfig kConfig = kRow.config;
  return Kernel{
      .name = kRow.name,
      .family = "simt",
      .summary = kRow.summary,
      .types = kTypes<kConfig.type, kConfig.accumulate>,
      .tile_m = kConfig.tile_m,
      .tile_n = kConfig.tile_n,
      .tile_k = 1,
      .stages = 1,
      .threads = kConfig.threads(),
      .auto_rank = 10,
      .launch = LaunchNaive<naive::Variant<index>>,
  };
});

constexpr auto kSlicedK = MakeRows<std::size(sliced_k::kTable)>([](auto index) {
  constexpr const sliced_k::Row& kRow = sliced_k::kTable[index];
  constexpr SlicedKConfig kConfig = kRow.config;
  return Kernel{
      .name = kRow.name,
      .family = "simt",
      .summary = kRow.summary,
      .types = kTypes<kConfig.type, kConfig.type>,
      .tile_m = kConfig.tile,
      .tile_n = kConfig.tile,
      .tile_k = kConfig.tile,
      .stages = 1,
      .threads = kConfig.threads(),
      .shared_memory_bytes = 2 * SizeOf(kConfig.type) * size_t{kConfig.threads()},
      .auto_rank = 11,
      .workspace_bytes = TransposeScratchBytesFor<false, false>,
      .launch = LaunchSlicedK<sliced_k::Variant<index>>,
  };
});

}  // namespace

absl::Span<const Kernel> SimtRows() { return kNaive; }

absl::Span<const Kernel> SimtSlicedKRows() { return kSlicedK; }

}  // namespace gemm
