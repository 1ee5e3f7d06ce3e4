#include "server/engine/core/hang_limit.h"

#include <algorithm>

namespace gemmd {
namespace {

constexpr double kOfAnElement = 10;  // operations to generate it, and to move it

}  // namespace

double WorkOf(const gemm::Problem& problem) {
  const auto m = static_cast<double>(problem.m), n = static_cast<double>(problem.n),
             k = static_cast<double>(problem.k);
  // Of a group, the sum of the products' m or k is in one of m and k; what does not have that
  // dimension there is for each.
  const auto products = static_cast<double>(problem.extents.size());
  const double of_b = problem.grouped == gemm::GroupedBy::kM ? products : 1;
  const double of_d = problem.grouped == gemm::GroupedBy::kK ? products : 1;
  return gemm::Flops(problem) +
         static_cast<double>(problem.batch) * kOfAnElement * (m * k + of_b * k * n + of_d * m * n);
}

double WorkOf(const Shape& generated) {
  return kOfAnElement * static_cast<double>(generated.rows) * static_cast<double>(generated.cols);
}

absl::Duration LongestTime(gemm::Target target, double operations, absl::Duration measured) {
  if (target == gemm::Target::kHost) return absl::Seconds(operations / kSlowestHost);
  const absl::Duration slowest = absl::Seconds(operations / kSlowestCuda);
  if (measured == absl::ZeroDuration()) return slowest;
  return std::min(slowest, kMostOfMeasured * measured);
}

absl::Duration HangLimit(absl::Duration job_timeout, int streams, absl::Duration longest) {
  return job_timeout + streams * longest;
}

absl::Duration HangGrace(absl::Duration limit) { return std::min(limit, absl::Seconds(5)); }

}  // namespace gemmd
