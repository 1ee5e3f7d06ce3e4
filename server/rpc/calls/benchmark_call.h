// One Benchmark call.
#pragma once

#include <memory>

#include "gemm/v1/gemm.pb.h"
#include "server/benchmark/benchmarks.h"
#include "server/rpc/context/method.h"
#include "server/rpc/life/reactors.h"

namespace gemmd {

class BenchmarkCall final : public AnswerStream, public BenchmarkListener {
 public:
  BenchmarkCall(ServiceContext& service, grpc::CallbackServerContext* call)
      : AnswerStream(service, call, MethodOf<gemm::v1::BenchmarkRequest>()) {}

  // Called by the benchmark's thread.
  void OnOutline(const BenchmarkOutline& outline) override;
  void OnProgress(const gemm::bench::Progress& progress) override;
  void OnRows(size_t shape, absl::Span<const gemm::bench::Row> rows) override;
  void OnEnd(absl::StatusOr<BenchmarkTotals> totals) override;
  // Called when the server stops.
  void BeginDrain() override;

 private:
  absl::Status Start(const grpc::ByteBuffer& request) override;
  void CancelWork(const absl::Status& why) override;
  // Sends a message, and waits for room while the client has not read earlier ones. The
  // benchmark is stopped instead at a fixed time after its limit, counted from the
  // start of the call.
  void SendWithRoom(const gemm::v1::BenchmarkResponse& response);

  absl::Time last_progress_ = absl::InfinitePast();  // of the benchmark's thread alone

  std::shared_ptr<BenchmarkRun> run_ ABSL_GUARDED_BY(mutex_);  // while it runs
};

}  // namespace gemmd
