// Threads kept on a few neighbouring CPUs.
#pragma once

#include <sched.h>

#include <vector>

namespace gemmd {

// `count` neighbours among `allowed`, which is in order and not empty, with
// `current` among them; all of `allowed` where there are no more. Counts that
// divide the cores of a socket never straddle two.
std::vector<int> NeighbourCpus(const std::vector<int>& allowed, int current, int count);

// While it lives, this thread and those that it starts run on `count` CPUs
// around the one it is on; the started ones stay there. 0: anywhere.
class CpuConfinement {
 public:
  explicit CpuConfinement(int count);
  ~CpuConfinement();
  CpuConfinement(const CpuConfinement&) = delete;
  CpuConfinement& operator=(const CpuConfinement&) = delete;

 private:
  bool confined_ = false;
  cpu_set_t before_;
};

}  // namespace gemmd
