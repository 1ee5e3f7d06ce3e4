#include "server/engine/job/zero_copy.h"

namespace gemmd {
namespace {

// A kernel loads its operands in tiles along k, and may have to wait for each before it asks for
// the next. A wait takes about two microseconds, and all copies of a small job about fifteen.
constexpr int64_t kMostWaits = 2;
constexpr int64_t kLibraryTileK = 32;

int64_t WaitsOf(const gemm::Kernel& kernel, int64_t k) {
  const int64_t tile_k = kernel.tile_k > 0 ? kernel.tile_k : kLibraryTileK;
  return (k + tile_k - 1) / tile_k;
}

// A library adds C and the bias to a D that it has written.
bool ReadsItsResult(const gemm::Kernel& kernel, const gemm::Problem& problem) {
  return kernel.tile_m == 0 && (problem.beta != 0 || problem.bias != gemm::BiasAxis::kNone ||
                                problem.activation != gemm::Activation::kNone);
}

}  // namespace

ZeroCopy ZeroCopy::Of(const AdmittedJob& job, JobHoldings& holdings, size_t bytes) {
  if (job.check.plan.has_value()) return {};
  uint64_t payload = 0;
  for (const Role role : kRoles) {
    const JobInput& input = holdings[role];
    if (input.payload) payload += input.memory->shape.pitched_bytes();
  }
  const gemm::Kernel& kernel = *job.pick.kernel;
  const gemm::Problem& problem = job.plan.problem;
  const Shape& result = job.plan.result;
  // Each tile of the result reads the rows and columns that it needs anew. One product whose
  // result is small, too, has few.
  const bool few_tiles = result.pitched_bytes() <= bytes && RulesOf(job.plan.form).zero_copy;
  return {.payload = payload > 0 && payload <= bytes && few_tiles &&
                     WaitsOf(kernel, problem.k) <= kMostWaits,
          .result = job.spec.stream_result && !job.spec.keep_result.has_value() &&
                    result.pitched_bytes() <= bytes &&
                    result.pitched_bytes() == result.dense_bytes() &&
                    !ReadsItsResult(kernel, problem)};
}

}  // namespace gemmd
