#include "server/rpc/watch/wait_watch.h"

#include <algorithm>
#include <atomic>

#include "grpcpp/alarm.h"
#include "server/base/clock.h"
#include "server/base/serving_clock.h"
#include "server/base/thread_name.h"
#include "server/rpc/watch/call_guard.h"
#include "server/rpc/watch/live_calls.h"

namespace gemmd {
namespace {

// While staging is scarce, clients that take nothing have this part of their time.
constexpr int kScarceFactor = 8;
constexpr int kLooksPerTimeout = 4;
// While gRPC's threads are behind, the ServingClock runs at this part of its speed: a
// client that takes nothing is found even if they stay behind for ever.
constexpr int kBehindFactor = 8;

// Messages through gRPC's threads. They may come back after their sender is gone.
std::atomic<uint64_t> messages_sent{0};
std::atomic<uint64_t> messages_back{0};

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

bool WaitWatch::GrpcKeepsUp() {
  if (messages_back.load() < sent_) return false;
  sent_ = messages_sent.fetch_add(1) + 1;
  auto* const alarm = new grpc::Alarm;
  alarm->Set(gpr_now(GPR_CLOCK_MONOTONIC), [alarm, sent = sent_](bool) {
    uint64_t last = messages_back.load();
    while (last < sent && !messages_back.compare_exchange_weak(last, sent)) {
    }
    delete alarm;
  });
  return true;
}

void WaitWatch::Loop() {
  const RpcLimits& limits = service_.limits;
  const absl::Duration period = Period(limits);
  absl::Time last_look = SteadyNow();
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (!stop_) stopped_.WaitFor(mutex_, period);
      if (stop_) return;
    }
    const absl::Time look = SteadyNow();
    if (!GrpcKeepsUp()) {
      const absl::Duration passed = look - last_look;
      ServingClock::LeaveOut(passed - passed / kBehindFactor);
    }
    last_look = look;
    const bool scarce = service_.engine.ResultStagingIsScarce();
    service_.live_calls.CheckWaits(
        {.now = ServingClock::Now(),
         .send = scarce ? limits.send_timeout / kScarceFactor : limits.send_timeout,
         .payload = limits.payload_timeout});
  }
}

}  // namespace gemmd
