// The thread that finds clients that stall their calls.
#pragma once

#include <cstdint>
#include <thread>

#include "server/base/mutex.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

// Checks all live calls, from construction to destruction, a few times within the
// shortest timeout. Also sends itself a message through gRPC's threads each time: while
// the last one is not back, those threads are behind, and the ServingClock goes slowly.
class WaitWatch {
 public:
  explicit WaitWatch(ServiceContext& service);
  ~WaitWatch();

 private:
  void Loop();
  // Whether the last message through gRPC's threads is back; then sends the next one.
  bool GrpcKeepsUp();

  ServiceContext& service_;
  Mutex mutex_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t sent_ = 0;  // the last message; of the thread
  std::thread thread_;
};

}  // namespace gemmd
