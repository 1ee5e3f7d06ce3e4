// Picks one of several weighted choices for each request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gemmd::ctl {

// A cycle in which choice i occurs weights[i] times, spread as evenly as possible
// (the smooth weighted round robin of nginx). Immutable.
class Mix {
 public:
  // At least one weight, each at least 1.
  explicit Mix(const std::vector<int>& weights);

  size_t Choice(uint64_t index) const { return cycle_[index % cycle_.size()]; }
  size_t cycle_length() const { return cycle_.size(); }

 private:
  std::vector<size_t> cycle_;
};

}  // namespace gemmd::ctl
