// The Hopper variants over f32 rounded to TF32.
#include "kernels/core/families.h"
#include "kernels/hopper/configs.h"
#include "kernels/hopper/rows.cuh"

namespace gemm {
namespace {

struct HopperTF32 {
  static constexpr absl::string_view kType = "tf32";
  static constexpr auto kConfigs = HopperTf32Configs();
};

constexpr auto kRows = MakeHopperRows<HopperTF32>();

}  // namespace

absl::Span<const Kernel> HopperTF32Rows() { return kRows; }

}  // namespace gemm
