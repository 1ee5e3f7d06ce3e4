// Keeps threads on a few neighbouring CPUs.
#pragma once

#include <sched.h>

#include <vector>

namespace gemmd {

// `count` neighbouring CPUs of `allowed`, which is sorted and not empty, including
// `current`; all of `allowed` where it has no more. Where `count` divides the number
// of cores of a socket, all are on one socket.
std::vector<int> NeighbourCpus(const std::vector<int>& allowed, int current, int count);

// While this object lives, the calling thread and the threads that it starts run on
// `count` CPUs around the present one. Started threads stay there. 0: no restriction.
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
