#include "kernels/core/without_product.h"

#include <algorithm>
#include <type_traits>

#include "kernels/host/epilogue.h"

namespace gemm {

absl::Status ApplyWithoutProductOnHost(const Problem& problem, const Operands& operands) {
  constexpr int64_t kRun = 256;
  VisitDType(problem.types.d, [&]<DType kD>() {
    using Zero = std::conditional_t<kD == DType::kS32, WrappingS32, double>;
    constexpr Zero kAccumulators[kRun] = {};
    for (int64_t i = 0; i < problem.m; ++i) {
      for (int64_t j = 0; j < problem.n; j += kRun) {
        FinishRow<kD>(problem, operands, kAccumulators, i, j, std::min(kRun, problem.n - j));
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace gemm
