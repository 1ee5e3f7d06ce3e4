// Which kernels are worth measuring for a shape.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "gemmd/client/types.h"

namespace gemmd::ctl {

// The kernels that are worth measuring, by rankings of the same shape, one for each combination of
// types.
class Candidates {
 public:
  // The `best` kernels with the least estimates are worth measuring.
  explicit Candidates(size_t best) : best_(best) {}

  void Add(const client::RankKernelsResponse& ranking);

  // Whether some ranking has the kernel, and none among its best.
  bool LeavesOut(const std::string& kernel) const {
    return ranked_.count(kernel) > 0 && worth_.count(kernel) == 0;
  }

 private:
  size_t best_;
  std::set<std::string> ranked_;
  std::set<std::string> worth_;
};

}  // namespace gemmd::ctl
