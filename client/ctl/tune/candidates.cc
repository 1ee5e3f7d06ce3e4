#include "client/ctl/tune/candidates.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace gemmd::ctl {

void Candidates::Add(const client::RankKernelsResponse& ranking) {
  std::vector<std::pair<double, std::string>> estimated;
  for (const ::gemm::v1::RankedKernel& kernel : ranking.kernels()) {
    ranked_.insert(kernel.name());
    if (kernel.estimated_seconds() > 0) {
      estimated.emplace_back(kernel.estimated_seconds(), kernel.name());
    } else {
      worth_.insert(kernel.name());
    }
  }
  std::sort(estimated.begin(), estimated.end());
  if (estimated.size() > best_) estimated.resize(best_);
  for (const auto& [seconds, name] : estimated) worth_.insert(name);
}

}  // namespace gemmd::ctl
