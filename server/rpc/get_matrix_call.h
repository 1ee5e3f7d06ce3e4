// One GetMatrix call.
#pragma once

#include <memory>

#include "server/engine/engine.h"
#include "server/rpc/answer_stream.h"

namespace gemmd {

class GetMatrixCall final : public AnswerStream, public DownloadListener {
 public:
  GetMatrixCall(ServiceContext& service, grpc::CallbackServerContext* call)
      : AnswerStream(service, call, "GetMatrix") {}

  // Called by the engine, whose own drain ends the call.
  void OnBytes(ResultPiece piece) override;
  using AnswerStream::OnDone;  // gRPC's, beside it
  void OnDone(absl::Status status) override;
  void BeginDrain() override {}

 private:
  absl::Status Start(const grpc::ByteBuffer& request) override;
  void CancelWork(const absl::Status& why) override;

  const ReceiverId receiver_ = NewReceiver();
  std::shared_ptr<Download> download_ ABSL_GUARDED_BY(mutex_);  // while it runs
};

}  // namespace gemmd
