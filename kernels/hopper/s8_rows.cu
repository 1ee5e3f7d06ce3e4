// The Hopper variants over s8, with s32 accumulators.
#include "kernels/core/families.h"
#include "kernels/hopper/configs.h"
#include "kernels/hopper/rows.cuh"

namespace gemm {
namespace {

struct HopperS8 {
  static constexpr absl::string_view kType = "s8";
  static constexpr auto kConfigs = HopperS8Configs();
};

constexpr auto kRows = MakeHopperRows<HopperS8>();

}  // namespace

absl::Span<const Kernel> HopperS8Rows() { return kRows; }

}  // namespace gemm
