// What is measured for a tuning table, of all that could be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gemm::bench {

// Kernels come within this factor of the fastest to be measured again.
inline constexpr double kFinalistFactor = 1.25;

struct Estimate {
  std::string kernel;
  std::string family;
  double seconds = 0;  // 0: nobody knows
};

// The `best` by estimate, all without one, and those of libraries: their estimates are of one
// algorithm of many.
std::set<std::string> WorthMeasuring(const std::vector<Estimate>& kernels, size_t best);

// Every value of a launch parameter that has few, unless `values` has it already. Parameters
// with many keep their defaults.
void AddValuesToTry(const std::string& name, int64_t min, int64_t max,
                    std::map<std::string, std::vector<int64_t>>& values);

}  // namespace gemm::bench
