#include "server/rpc/wait_watch.h"

#include <algorithm>

#include "server/base/thread_name.h"
#include "server/rpc/call_guard.h"

namespace gemmd {
namespace {

// While staging is scarce, clients that take nothing have this part of their time.
constexpr int kScarceFactor = 8;
constexpr int kLooksPerTimeout = 4;

absl::Duration Period(const RpcLimits& limits) {
  const absl::Duration shortest =
      std::min(limits.send_timeout / kScarceFactor, limits.payload_timeout) / kLooksPerTimeout;
  return std::clamp(shortest, absl::Milliseconds(5), absl::Seconds(1));
}

}  // namespace

WaitWatch::WaitWatch(ServiceContext& service)
    : service_(service), thread_([this] {
        SetThreadName("waits");
        Loop();
      }) {}

WaitWatch::~WaitWatch() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  stopped_.NotifyAll();
  thread_.join();
}

void WaitWatch::Loop() {
  const RpcLimits& limits = service_.limits;
  const absl::Duration period = Period(limits);
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (!stop_) stopped_.WaitFor(mutex_, period);
      if (stop_) return;
    }
    const bool scarce = service_.engine.ResultStagingIsScarce();
    service_.live_calls.CheckWaits(
        {.now = SteadyNow(),
         .send = scarce ? limits.send_timeout / kScarceFactor : limits.send_timeout,
         .payload = limits.payload_timeout});
  }
}

}  // namespace gemmd
