// The bucket boundaries of the histograms.
#pragma once

#include <vector>

namespace gemmd {

// Seconds: 5 us to 10 s in steps of 1, 2.5 and 5. A small product on resident
// operands takes tens of microseconds, a large one over a slow link seconds.
const std::vector<double>& DurationBuckets();

// TFLOPS (1e12 floating-point operations per second): 0.001 to 50 in steps of 1, 2.5 and
// 5, for hosts, CUDA cores and small shapes; then evenly spaced up to 2000, for tensor
// cores.
const std::vector<double>& TflopsBuckets();

}  // namespace gemmd
