#include "server/process/cpu_confinement.h"

#include <algorithm>
#include <cstddef>

namespace gemmd {

std::vector<int> NeighbourCpus(const std::vector<int>& allowed, int current, int count) {
  const auto size = static_cast<size_t>(count);
  if (size >= allowed.size()) return allowed;
  const auto at = std::lower_bound(allowed.begin(), allowed.end(), current);
  const auto index = static_cast<size_t>(at - allowed.begin());
  const size_t first = std::min(index / size * size, allowed.size() - size);
  return {allowed.begin() + static_cast<std::ptrdiff_t>(first),
          allowed.begin() + static_cast<std::ptrdiff_t>(first + size)};
}

CpuConfinement::CpuConfinement(int count) {
  if (count == 0 || sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
  std::vector<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before_)) allowed.push_back(cpu);
  }
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  for (const int cpu : NeighbourCpus(allowed, sched_getcpu(), count)) CPU_SET(cpu, &chosen);
  // Where the system does not let it be, the threads run anywhere: slower, no less right.
  confined_ = sched_setaffinity(0, sizeof(chosen), &chosen) == 0;
}

CpuConfinement::~CpuConfinement() {
  if (confined_) sched_setaffinity(0, sizeof(before_), &before_);
}

}  // namespace gemmd
