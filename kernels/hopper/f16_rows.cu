// The Hopper variants over f16.
#include "kernels/core/families.h"
#include "kernels/hopper/configs.h"
#include "kernels/hopper/rows.cuh"

namespace gemm {
namespace {

struct HopperF16 {
  static constexpr absl::string_view kType = "f16";
  static constexpr auto kConfigs = Hopper16BitConfigs(DType::kF16);
};

constexpr auto kRows = MakeHopperRows<HopperF16>();

}  // namespace

absl::Span<const Kernel> HopperF16Rows() { return kRows; }

}  // namespace gemm
