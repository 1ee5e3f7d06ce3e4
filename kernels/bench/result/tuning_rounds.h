// The measurements of one shape in several rounds, and the fastest kernels by them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gemm/tuning.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

// A launch parameter's values as a row of a benchmark has them: "algorithm=3 swizzle=own".
// "own" is the kernel's choice, which a table leaves out.
std::map<std::string, int64_t> ParamsOf(const std::string& text);

class TuningRounds {
 public:
  // A row of the current round. Rows that were not measured do not count. One whose result
  // is wrong shuts its kernel out.
  void Add(const Row& row);
  // Ends the round.
  void EndRound() { ++rounds_; }

  // The kernels that come within `factor` of the fastest for some types, by the median of
  // their rounds so far.
  std::set<std::string> Finalists(double factor) const;

  using Best = std::vector<std::pair<TunedProduct, TunedChoice>>;
  // For each product, the kernel with the lowest median of all rounds. One that a round
  // lacks does not count.
  Best Fastest() const;

  // The median of a kernel's rounds so far. Empty where it has none, or a wrong result.
  std::optional<double> SecondsOf(const TunedProduct& product, const std::string& kernel,
                                  const std::map<std::string, int64_t>& params) const;

  // Kernels with a wrong result.
  const std::set<std::string>& wrong() const { return wrong_; }

 private:
  struct Candidate {
    std::string kernel;
    std::string params;
    // The check takes the 0 that the compiler compares with for a pointer.
    // NOLINTNEXTLINE(modernize-use-nullptr)
    friend auto operator<=>(const Candidate&, const Candidate&) = default;
  };

  int rounds_ = 0;
  std::map<TunedProduct, std::map<Candidate, std::vector<double>>> seconds_;
  std::set<std::string> wrong_;
};

}  // namespace gemm::bench
