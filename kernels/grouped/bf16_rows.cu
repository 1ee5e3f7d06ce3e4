// The grouped variants over bf16.
#include "kernels/core/families.h"
#include "kernels/grouped/config.h"
#include "kernels/grouped/rows.cuh"

namespace gemm {
namespace {

struct GroupedBF16 {
  static constexpr absl::string_view kType = "bf16";
  static constexpr auto kConfigs = Grouped16BitConfigs(DType::kBF16);
};

constexpr auto kRows = MakeGroupedRows<GroupedBF16>();

}  // namespace

absl::Span<const Kernel> GroupedBF16Rows() { return kRows; }

}  // namespace gemm
