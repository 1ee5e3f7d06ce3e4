// One Benchmark call.
#pragma once

#include <memory>

#include "gemm/v1/gemm.pb.h"
#include "server/benchmark/benchmarks.h"
#include "server/rpc/write_call.h"

namespace gemmd {

class BenchmarkCall final : public WriteCall, public BenchmarkListener {
 public:
  BenchmarkCall(ServiceContext& service, grpc::CallbackServerContext* call)
      : WriteCall(service, call, "Benchmark") {}

  // From the benchmark's thread.
  void OnOutline(const BenchmarkOutline& outline) override;
  void OnProgress(const gemm::bench::Progress& progress) override;
  void OnRows(size_t shape, absl::Span<const gemm::bench::Row> rows) override;
  void OnEnd(absl::StatusOr<BenchmarkTotals> totals) override;
  // From whoever stops the server.
  void BeginDrain() override;

 private:
  absl::Status Start(const grpc::ByteBuffer& request) override;
  void CancelWork(const absl::Status& why) override;
  // Waits for room while the client has yet to read what came before; some time
  // past the limit of a benchmark, counted from the call's begin, it is stopped
  // instead.
  void SendWithRoom(const gemm::v1::BenchmarkResponse& response);

  absl::Time last_progress_ = absl::InfinitePast();  // of the benchmark's thread alone

  std::shared_ptr<BenchmarkRun> run_ ABSL_GUARDED_BY(mutex_);  // while it runs
};

}  // namespace gemmd
