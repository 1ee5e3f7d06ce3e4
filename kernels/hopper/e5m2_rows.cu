// The Hopper variants over e5m2.
#include "kernels/core/families.h"
#include "kernels/hopper/configs.h"
#include "kernels/hopper/rows.cuh"

namespace gemm {
namespace {

struct HopperE5M2 {
  static constexpr absl::string_view kType = "e5m2";
  static constexpr auto kConfigs = Hopper8BitConfigs(DType::kE5M2);
};

constexpr auto kRows = MakeHopperRows<HopperE5M2>();

}  // namespace

absl::Span<const Kernel> HopperE5M2Rows() { return kRows; }

}  // namespace gemm
