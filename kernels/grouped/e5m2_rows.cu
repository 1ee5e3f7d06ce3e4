// The grouped variants over e5m2, B stored n x k.
#include "kernels/core/families.h"
#include "kernels/grouped/config.h"
#include "kernels/grouped/rows.cuh"

namespace gemm {
namespace {

struct GroupedE5M2 {
  static constexpr absl::string_view kType = "e5m2";
  static constexpr auto kConfigs = Grouped8BitConfigs(DType::kE5M2);
};

constexpr auto kRows = MakeGroupedRows<GroupedE5M2>();

}  // namespace

absl::Span<const Kernel> GroupedE5M2Rows() { return kRows; }

}  // namespace gemm
