// The thread that finds clients that stall their calls.
#pragma once

#include <thread>

#include "server/base/mutex.h"
#include "server/rpc/service_context.h"

namespace gemmd {

// Checks all live calls, from construction to destruction, a few times within the
// shortest timeout.
class WaitWatch {
 public:
  explicit WaitWatch(ServiceContext& service);
  ~WaitWatch();

 private:
  void Loop();

  ServiceContext& service_;
  Mutex mutex_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace gemmd
