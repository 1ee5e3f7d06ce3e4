#include "client/ctl/run_benchmark.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "client/ctl/bench_messages.h"
#include "client/ctl/deadline.h"
#include "client/ctl/output/render.h"
#include "client/ctl/stop_on_signal.h"
#include "gemmd/client/options.h"

namespace gemmd::ctl {
namespace {

// Cancels once a signal was received, as long as this object lives.
class CancelOnSignal {
 public:
  explicit CancelOnSignal(client::Canceller canceller)
      : thread_([this, canceller = std::move(canceller)] { Watch(canceller); }) {}
  ~CancelOnSignal() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  CancelOnSignal(const CancelOnSignal&) = delete;
  CancelOnSignal& operator=(const CancelOnSignal&) = delete;

 private:
  void Watch(const client::Canceller& canceller) {
    constexpr std::chrono::milliseconds kPoll{20};
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kPoll, [this] { return done_; })) {
      if (StopOnSignal::stopped()) return canceller.Cancel();
    }
  }

  const StopOnSignal signals_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;  // uses what is above it
};

}  // namespace

absl::StatusOr<client::BenchmarkEnd> RunBenchmark(
    const Context& context, client::Client& client, const gemm::bench::BenchmarkOptions& options,
    const std::string& device,
    const std::function<absl::Status(const client::BenchmarkResponse&)>& take) {
  const auto& limits = client.server().limits();
  client::CallOptions call = Call(context, BenchmarkDeadline(FromProto(limits.benchmark_limit())));
  call.canceller.emplace();
  const client::Canceller& canceller = *call.canceller;
  const CancelOnSignal signals(canceller);
  absl::Status failed;
  auto end = client.Benchmark(
      ToRequest(options, device),
      [&](const client::BenchmarkResponse& response) {
        if (!failed.ok()) return;
        failed = take(response);
        if (!failed.ok()) canceller.Cancel();
      },
      call);
  if (!failed.ok()) return failed;
  return end;
}

}  // namespace gemmd::ctl
