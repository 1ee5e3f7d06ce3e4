// One ReloadTuning call.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "gemm/v1/gemm.pb.h"
#include "grpcpp/server_context.h"
#include "server/engine/core/report.h"
#include "server/rpc/context/method.h"
#include "server/rpc/context/service_context.h"
#include "server/rpc/life/reactors.h"

namespace gemmd {

// The most names of skipped kernels in an answer.
inline constexpr size_t kMaxSkippedNames = 100;

// Waits for the engine's thread that reads the files. A call that is cancelled, or that the drain
// meets, ends at once, and the files are read all the same.
class ReloadTuningCall final : public UnaryCall {
 public:
  // The reactor lives until the call has ended and the engine is done with it.
  static ReloadTuningCall* Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                                 gemm::v1::ReloadTuningResponse* response);

  void BeginDrain() override;

  ReloadTuningCall(ServiceContext& service, grpc::CallbackServerContext* call,
                   gemm::v1::ReloadTuningResponse* response)
      : UnaryCall(service, call, MethodOf<gemm::v1::ReloadTuningRequest>()), response_(response) {}

 private:
  void OnCancelled() override;
  void OnRead(const absl::StatusOr<TuningLoad>& load);

  gemm::v1::ReloadTuningResponse* const response_;  // gRPC's; written before outcome_
};

}  // namespace gemmd
