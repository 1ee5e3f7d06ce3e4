// The thread that looks for clients who keep their calls waiting.
#pragma once

#include <thread>

#include "server/base/mutex.h"
#include "server/rpc/service_context.h"

namespace gemmd {

// Looks from construction to destruction, a few times in the shortest timeout.
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
