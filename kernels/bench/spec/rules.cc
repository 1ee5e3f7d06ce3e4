#include "kernels/bench/spec/rules.h"

#include <algorithm>
#include <utility>

namespace gemm::bench {
namespace {

constexpr int64_t kMostValues = 16;

}  // namespace

std::set<std::string> WorthMeasuring(const std::vector<Estimate>& kernels, size_t best) {
  std::set<std::string> worth;
  std::vector<std::pair<double, std::string>> estimated;
  for (const Estimate& kernel : kernels) {
    const bool library = kernel.family == "cublas" || kernel.family == "cublaslt";
    if (kernel.seconds > 0 && !library) {
      estimated.emplace_back(kernel.seconds, kernel.kernel);
    } else {
      worth.insert(kernel.kernel);
    }
  }
  std::sort(estimated.begin(), estimated.end());
  if (estimated.size() > best) estimated.resize(best);
  for (auto& [seconds, kernel] : estimated) worth.insert(std::move(kernel));
  return worth;
}

void AddValuesToTry(const std::string& name, int64_t min, int64_t max,
                    std::map<std::string, std::vector<int64_t>>& values) {
  if (max - min >= kMostValues || values.count(name) > 0) return;
  std::vector<int64_t>& all = values[name];
  for (int64_t value = min; value <= max; ++value) all.push_back(value);
}

}  // namespace gemm::bench
