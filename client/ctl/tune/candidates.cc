#include "client/ctl/tune/candidates.h"

#include <vector>

#include "kernels/bench/spec/rules.h"

namespace gemmd::ctl {

void Candidates::Add(const client::RankKernelsResponse& ranking) {
  std::vector<gemm::bench::Estimate> estimates;
  for (const ::gemm::v1::RankedKernel& kernel : ranking.kernels()) {
    ranked_.insert(kernel.name());
    estimates.push_back({kernel.name(), kernel.family(), kernel.estimated_seconds()});
  }
  worth_.merge(gemm::bench::WorthMeasuring(estimates, best_));
}

}  // namespace gemmd::ctl
