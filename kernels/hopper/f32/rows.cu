// The Hopper variants of f32 on CUDA cores.
#include <iterator>

#include "kernels/core/families.h"
#include "kernels/core/rows.h"
#include "kernels/hopper/f32/config.h"
#include "kernels/hopper/f32/estimate.h"
#include "kernels/hopper/f32/launch.cuh"
#include "kernels/hopper/f32/row.h"
#include "kernels/hopper/row.h"

namespace gemm {
namespace {

// A variant as a type: nvcc cannot name kernels by records of a namespace.
template <size_t kIndex>
struct HopperF32Variant {
  static constexpr HopperF32Config kConfig = kHopperF32Configs[kIndex];
  static constexpr NameText kName = HopperF32Name(kConfig);
  static constexpr SummaryText kSummary = HopperF32Summary(kConfig);
  static_assert(kConfig.valid());
};

// f32x3 allows larger errors than f32 (error_bound.cc).
constexpr Types kTypes[] = {{DType::kF32, DType::kF32, DType::kF32, Compute::kF32},
                            {DType::kF32, DType::kF32, DType::kF32, Compute::kF32x3}};

template <class Variant>
size_t HopperF32ScratchBytes(const Problem& p) {
  return TransposeScratchBytes(p, HopperF32Layout(Variant::kConfig, p)) +
         HopperF32StreamBytes<Variant>();
}

template <class Variant>
double HopperF32Seconds(const Problem& p) {
  return EstimateHopperF32(Variant::kConfig, p);
}

template <class Variant>
absl::Status LaunchHopperF32(const Launch& launch) {
  const LoadLayout layout = HopperF32Layout(Variant::kConfig, launch.problem);
  const absl::StatusOr<TransposedProduct> transposed = TransposeOperands(launch, layout);
  if (!transposed.ok()) return transposed.status();
  const size_t used = TransposeScratchBytes(launch.problem, layout);
  if constexpr (Variant::kConfig.along_k()) {
    const Problem& p = transposed->problem;
    if (!p.trans_a) {
      return p.trans_b ? LaunchHopperF32Layout<Variant, false, true>(*transposed, launch, used)
                       : LaunchHopperF32Layout<Variant, false, false>(*transposed, launch, used);
    }
    if (p.trans_b) return LaunchHopperF32Layout<Variant, true, true>(*transposed, launch, used);
  }
  return LaunchHopperF32Layout<Variant, true, false>(*transposed, launch, used);
}

constexpr auto kRows = MakeRows<std::size(kHopperF32Configs)>([](auto index) {
  using Variant = HopperF32Variant<index>;
  constexpr HopperF32Config kConfig = Variant::kConfig;
  return Kernel{
      .name = Variant::kName.view(),
      .family = "hopper",
      .summary = Variant::kSummary.view(),
      .capability = {.min = 90, .max = 90},
      .code = DeviceCode::kSm90a,
      .types = kTypes,
      .tile_m = kConfig.tile_m,
      .tile_n = kConfig.tile_n,
      .tile_k = kConfig.tile_k(),
      .stages = kConfig.stages,
      .threads = kConfig.threads(),
      .shared_memory_bytes = static_cast<size_t>(kConfig.all_bytes()),
      .params = kHopperParams,
      .auto_rank = 21,
      .estimated_seconds = HopperF32Seconds<Variant>,
      // The bits of a tile that is cut follow from how many tiles there are.
      .batches = !kConfig.stream,
      .row_blocks = !kConfig.stream,
      .max_extent = kHopperMost,
      .workspace_bytes = HopperF32ScratchBytes<Variant>,
      .launch = LaunchHopperF32<Variant>,
  };
});

}  // namespace

absl::Span<const Kernel> HopperF32Rows() { return kRows; }

}  // namespace gemm
