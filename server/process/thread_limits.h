// The threads of the process: how many it may have and needs, and on which CPUs they run.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gemmd {

// The threads that gRPC 1.51 may make on this machine, from its start on. It makes some of them
// only at its first calls, and does not notice if one does not start. Work that is queued for that
// one waits for ever.
int ThreadsOfGrpc();

// OK where `count` more threads can run beside those of the process. They are made, and ended.
// UNAVAILABLE says what the limits are, and what is needed. `of`: whose they are.
absl::Status CheckThreads(int count, absl::string_view of);

// The threads of the process, and the limits on them, for messages.
std::string DescribeThreads();

// `count` neighbouring CPUs of `allowed`, which is sorted and not empty, including `current`; all
// of `allowed` where it has no more. If `count` divides the number of cores of a socket, all are on
// one socket.
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
