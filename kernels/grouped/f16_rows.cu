// The grouped variants over f16.
#include "kernels/core/families.h"
#include "kernels/grouped/config.h"
#include "kernels/grouped/rows.cuh"

namespace gemm {
namespace {

struct GroupedF16 {
  static constexpr absl::string_view kType = "f16";
  static constexpr auto kConfigs = Grouped16BitConfigs(DType::kF16);
};

constexpr auto kRows = MakeGroupedRows<GroupedF16>();

}  // namespace

absl::Span<const Kernel> GroupedF16Rows() { return kRows; }

}  // namespace gemm
