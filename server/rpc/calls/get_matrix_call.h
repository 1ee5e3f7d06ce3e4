// One GetMatrix call.
#pragma once

#include <memory>

#include "gemm/v1/gemm.pb.h"
#include "server/engine/engine.h"
#include "server/rpc/context/method.h"
#include "server/rpc/life/reactors.h"

namespace gemmd {

class GetMatrixCall final : public AnswerStream, public DownloadListener {
 public:
  GetMatrixCall(ServiceContext& service, grpc::CallbackServerContext* call)
      : AnswerStream(service, call, MethodOf<gemm::v1::GetMatrixRequest>()) {}

  // Called by the engine.
  void OnBytes(ResultPiece piece) override;
  using AnswerStream::OnDone;  // gRPC's, beside it
  void OnDone(absl::Status status) override;

 private:
  // For the results of jobs that ran when the drain began.
  bool begins_while_draining() const override { return true; }
  absl::Status Start(const grpc::ByteBuffer& request) override;
  void CancelWork(const absl::Status& why) override;

  const ReceiverId receiver_ = NewReceiver();
  std::shared_ptr<Download> download_ ABSL_GUARDED_BY(mutex_);  // while it runs
};

}  // namespace gemmd
