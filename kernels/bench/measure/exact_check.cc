#include "kernels/bench/measure/exact_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gemm::bench {
namespace {

constexpr int kLines = 8;

// Sums of so many products of -1, 0 and 1 are exact in any order. f16 has every integer up to
// 2048, and fp8 of tensor cores more; a sum exceeds that by chance once in 10^15, with eight
// standard deviations of sqrt(4 k / 9). f32 has as many integers as there are products.
int64_t LargestExactDepth(const Types& types) {
  const bool fp8 = SizeOf(types.a) == 1 && types.compute != Compute::kS32;
  const bool narrow = types.compute == Compute::kF16 || fp8;
  return narrow ? 140'000 : int64_t{1} << 24;
}

}  // namespace

absl::Status ExactCheck::Prepare(Backend& backend, OperandSets& sets, const Problem& problem,
                                 int lines, const std::function<absl::Status()>& step) {
  missing_.clear();
  if (const int64_t most = LargestExactDepth(problem.types); problem.k > most) {
    missing_ = absl::StrCat("not compared exactly: k of ", problem.k, ", at most ", most);
    return absl::OkStatus();
  }
  const absl::StatusOr<Operands> operands = sets.Signs(problem);
  if (absl::IsResourceExhausted(operands.status())) {
    missing_ = "not compared exactly: no memory for operands of -1, 0 and 1";
    return absl::OkStatus();
  }
  if (!operands.ok()) return operands.status();
  operands_ = *operands;
  return oracle_.Prepare(backend, problem, operands_, Elements::kExact, std::min(lines, kLines),
                         step);
}

}  // namespace gemm::bench
