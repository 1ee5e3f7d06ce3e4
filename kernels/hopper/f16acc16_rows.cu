// The Hopper variants over f16, accumulated in f16.
#include "kernels/core/families.h"
#include "kernels/hopper/configs.h"
#include "kernels/hopper/rows.cuh"

namespace gemm {
namespace {

struct HopperF16Acc16 {
  static constexpr absl::string_view kType = "f16acc16";
  static constexpr auto kConfigs = HopperF16Acc16Configs();
};

constexpr auto kRows = MakeHopperRows<HopperF16Acc16>();

}  // namespace

absl::Span<const Kernel> HopperF16Acc16Rows() { return kRows; }

}  // namespace gemm
