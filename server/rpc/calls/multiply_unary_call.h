// One MultiplyUnary call.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "gemm/v1/gemm.pb.h"
#include "grpcpp/server_context.h"
#include "server/engine/job/job.h"
#include "server/rpc/context/method.h"
#include "server/rpc/context/service_context.h"
#include "server/rpc/life/reactors.h"
#include "server/rpc/watch/answer_backlog.h"

namespace gemmd {

class MultiplyUnaryCall final : public UnaryCall, public JobListener {
 public:
  // The reactor lives until the call has ended and the engine is done with it.
  static MultiplyUnaryCall* Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                                  const gemm::v1::MultiplyUnaryRequest* request,
                                  gemm::v1::MultiplyUnaryResponse* response);

  MultiplyUnaryCall(ServiceContext& service, grpc::CallbackServerContext* call,
                    gemm::v1::MultiplyUnaryResponse* response)
      : UnaryCall(service, call, MethodOf<gemm::v1::MultiplyUnaryRequest>()), response_(response) {}

  // Called by the engine.
  void OnResult(ResultPiece piece) override;
  using UnaryCall::OnDone;  // gRPC's, beside it
  void OnDone(absl::StatusOr<JobResult> result) override;

 private:
  void OnTaken() override { answer_.Take(); }
  void OnCancelled() override;

  // Whether the result fits one message, and its connection can take it in time.
  absl::Status CheckResult(const Shape& result);

  // Moves the operands' elements out of the request, which has so many bytes.
  absl::Status Start(gemm::v1::MultiplyUnaryRequest& request, size_t bytes);

  gemm::v1::MultiplyUnaryResponse* const response_;  // written before outcome_

  // Taken before the job begins, handed over when it has ended.
  AnswerBacklog::Place answer_;
  std::shared_ptr<Job> job_ ABSL_GUARDED_BY(mutex_);  // from its start to its end
};

}  // namespace gemmd
