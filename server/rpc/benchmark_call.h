// One Benchmark call. The locking is that of MultiplyStream.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "gemm/v1/gemm.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/benchmark/benchmarks.h"
#include "server/engine/mutex.h"
#include "server/rpc/live_calls.h"
#include "server/rpc/outbox.h"
#include "server/rpc/service_context.h"

namespace gemmd {

class BenchmarkCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                            public BenchmarkListener,
                            public LiveCall {
 public:
  // The reactor lives until the call has ended and the benchmark is done with it.
  static BenchmarkCall* Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                              const grpc::ByteBuffer& request);

  BenchmarkCall(ServiceContext& service, grpc::CallbackServerContext* call)
      : service_(service), call_(call) {}

  // From gRPC.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  // From the benchmark's thread.
  void OnOutline(const BenchmarkOutline& outline) override;
  void OnProgress(const gemm::bench::Progress& progress) override;
  void OnRows(size_t shape, absl::Span<const gemm::bench::Row> rows) override;
  void OnEnd(absl::StatusOr<BenchmarkTotals> totals) override;
  // From whoever stops the server.
  void BeginDrain() override;

 private:
  absl::Status Start(const grpc::ByteBuffer& request);
  // Ends the benchmark soon, whether it has begun or not. The first call counts.
  void Stop(absl::Status why);
  // Waits for room while the client has yet to read what came before; some time
  // past the limit of a benchmark, counted from the call's begin, it is stopped
  // instead.
  void Send(const gemm::v1::BenchmarkResponse& response);
  // Takes every step that is due.
  void Advance();

  ServiceContext& service_;
  grpc::CallbackServerContext* const call_;
  const absl::Time began_ = absl::Now();
  absl::Time last_progress_ = absl::InfinitePast();  // of the benchmark's thread alone

  Mutex mutex_;
  CondVar room_;
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<BenchmarkRun> run_ ABSL_GUARDED_BY(mutex_);  // once started
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);               // why, once it is to end
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mutex_);
  int busy_ ABSL_GUARDED_BY(mutex_) = 1;  // Begin
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gemmd
