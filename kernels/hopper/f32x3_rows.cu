// The Hopper variants over f32 as sums of two TF32 numbers.
#include "kernels/core/families.h"
#include "kernels/hopper/configs.h"
#include "kernels/hopper/rows.cuh"

namespace gemm {
namespace {

struct HopperF32x3 {
  static constexpr absl::string_view kType = "f32x3";
  static constexpr auto kConfigs = HopperF32x3Configs();
};

constexpr auto kRows = MakeHopperRows<HopperF32x3>();

}  // namespace

absl::Span<const Kernel> HopperF32x3Rows() { return kRows; }

}  // namespace gemm
