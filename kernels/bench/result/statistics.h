// Means of measurements.
#pragma once

#include <vector>

namespace gemm::bench {

// The middle value, of an even number the mean of the two. 0 of none.
double Median(std::vector<double> values);

// Of positive values; 0 of none.
double GeometricMean(const std::vector<double>& values);

}  // namespace gemm::bench
