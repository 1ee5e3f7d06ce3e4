// The Hopper variants over e4m3.
#include "kernels/core/families.h"
#include "kernels/hopper/configs.h"
#include "kernels/hopper/rows.cuh"

namespace gemm {
namespace {

struct HopperE4M3 {
  static constexpr absl::string_view kType = "e4m3";
  static constexpr auto kConfigs = Hopper8BitConfigs(DType::kE4M3);
};

constexpr auto kRows = MakeHopperRows<HopperE4M3>();

}  // namespace

absl::Span<const Kernel> HopperE4M3Rows() { return kRows; }

}  // namespace gemm
