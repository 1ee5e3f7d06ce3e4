// The Hopper variants over bf16.
#include "kernels/core/families.h"
#include "kernels/hopper/configs.h"
#include "kernels/hopper/rows.cuh"

namespace gemm {
namespace {

struct HopperBF16 {
  static constexpr absl::string_view kType = "bf16";
  static constexpr auto kConfigs = Hopper16BitConfigs(DType::kBF16);
};

constexpr auto kRows = MakeHopperRows<HopperBF16>();

}  // namespace

absl::Span<const Kernel> HopperBF16Rows() { return kRows; }

}  // namespace gemm
