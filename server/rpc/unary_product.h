// One MultiplyUnary call.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "gemm/v1/gemm.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/engine/job/job.h"
#include "server/rpc/call_guard.h"
#include "server/rpc/live_calls.h"
#include "server/rpc/service_context.h"

namespace gemmd {

class UnaryProduct final : public grpc::ServerUnaryReactor, public JobListener, public LiveCall {
 public:
  // The reactor lives until the call has ended and the engine is done with it.
  static UnaryProduct* Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                             const gemm::v1::MultiplyUnaryRequest* request,
                             gemm::v1::MultiplyUnaryResponse* response);

  UnaryProduct(ServiceContext& service, grpc::CallbackServerContext* call,
               gemm::v1::MultiplyUnaryResponse* response)
      : service_(service),
        call_(call),
        response_(response),
        guard_(service, call, "MultiplyUnary") {}

  // Called by gRPC.
  void OnCancel() override;
  void OnDone() override;
  // Called by the engine, whose own drain ends the call.
  void OnResult(ResultPiece piece) override;
  void OnDone(absl::StatusOr<JobResult> result) override;
  void BeginDrain() override {}
  // Called by WaitWatch: the client may leave the answer unread.
  void CheckWaits(const Patience& patience) override;

 private:
  // Moves the operands' elements out of the request.
  absl::Status Start(gemm::v1::MultiplyUnaryRequest& request);

  void End(const absl::Status& status);

  ServiceContext& service_;
  grpc::CallbackServerContext* const call_;
  gemm::v1::MultiplyUnaryResponse* const response_;
  const absl::Time began_ = SteadyNow();

  Mutex mutex_;
  CallGuard guard_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Job> job_ ABSL_GUARDED_BY(mutex_);  // from its start to its end
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusCode final_code_ ABSL_GUARDED_BY(mutex_) = absl::StatusCode::kOk;
};

}  // namespace gemmd
