#include "kernels/core/without_product.h"

#include <algorithm>

#include "kernels/host/epilogue.h"

namespace gemm {

absl::Status ApplyWithoutProductOnHost(const Problem& problem, const Operands& operands) {
  constexpr int64_t kRun = 256;
  constexpr double kAccumulators[kRun] = {};
  VisitDType(problem.types.d, [&]<DType kD>() {
    for (int64_t i = 0; i < problem.m; ++i) {
      for (int64_t j = 0; j < problem.n; j += kRun) {
        FinishRow<kD>(problem, operands, kAccumulators, i, j, std::min(kRun, problem.n - j));
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace gemm
