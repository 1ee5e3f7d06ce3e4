#include "kernels/bench/result/statistics.h"

#include <algorithm>
#include <cmath>

namespace gemm::bench {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double GeometricMean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double logarithms = 0;
  for (const double value : values) logarithms += std::log(value);
  return std::exp(logarithms / static_cast<double>(values.size()));
}

}  // namespace gemm::bench
