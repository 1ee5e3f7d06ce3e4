// The grouped variants over e4m3, B stored n x k.
#include "kernels/core/families.h"
#include "kernels/grouped/config.h"
#include "kernels/grouped/rows.cuh"

namespace gemm {
namespace {

struct GroupedE4M3 {
  static constexpr absl::string_view kType = "e4m3";
  static constexpr auto kConfigs = Grouped8BitConfigs(DType::kE4M3);
};

constexpr auto kRows = MakeGroupedRows<GroupedE4M3>();

}  // namespace

absl::Span<const Kernel> GroupedE4M3Rows() { return kRows; }

}  // namespace gemm
