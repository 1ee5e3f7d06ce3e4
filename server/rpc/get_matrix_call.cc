#include "server/rpc/get_matrix_call.h"

#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gemm/v1/gemm.pb.h"
#include "server/rpc/codec.h"
#include "server/rpc/replies.h"
#include "server/rpc/requests.h"
#include "server/rpc/status.h"

namespace gemmd {

namespace v1 = gemm::v1;

GetMatrixCall* GetMatrixCall::Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                                    const grpc::ByteBuffer& request) {
  auto get = std::make_shared<GetMatrixCall>(service, call);
  GetMatrixCall* const raw = get.get();
  service.live_calls.Add(std::move(get));
  absl::Status status = raw->Start(request);
  {
    MutexLock lock(raw->mutex_);
    --raw->busy_;
    if (!status.ok()) raw->outcome_ = std::move(status);
  }
  raw->Advance();
  return raw;
}

absl::Status GetMatrixCall::Start(const grpc::ByteBuffer& message) {
  v1::GetMatrixRequest request;
  if (!Parse(message, request)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request's ", message.Length(), " bytes are not a GetMatrixRequest"));
  }
  absl::StatusOr<DownloadSpec> spec = ParseDownload(request, CallDeadline(*call_));
  if (!spec.ok()) return spec.status();
  absl::StatusOr<std::shared_ptr<Download>> download =
      service_.engine.BeginDownload(*std::move(spec), Self<GetMatrixCall>());
  if (!download.ok()) return download.status();
  v1::GetMatrixResponse first;
  Fill((*download)->matrix(), *first.mutable_matrix());
  first.set_offset((*download)->range().offset);
  Send(Serialize(first));
  (*download)->Start();
  bool cancelled;
  {
    MutexLock lock(mutex_);
    if (!outcome_.has_value()) download_ = *download;
    cancelled = cancelled_;
  }
  if (cancelled) (*download)->Cancel(WhyCancelled(*call_));
  return absl::OkStatus();
}

void GetMatrixCall::OnWriteDone(bool) {
  // After a write that failed the call is cancelled, and OnCancel does the rest.
  grpc::ByteBuffer written;
  {
    MutexLock lock(mutex_);
    ++busy_;
    outbox_.OnWritten(written);
  }
  written.Clear();
  {
    MutexLock lock(mutex_);
    --busy_;
  }
  Advance();
}

void GetMatrixCall::OnCancel() {
  std::deque<grpc::ByteBuffer> unsent;
  std::shared_ptr<Download> download;
  {
    MutexLock lock(mutex_);
    ++busy_;
    cancelled_ = true;
    unsent = outbox_.TakeAll();
    download = download_;
  }
  unsent.clear();
  if (download != nullptr) download->Cancel(WhyCancelled(*call_));
  {
    MutexLock lock(mutex_);
    --busy_;
  }
  Advance();
}

void GetMatrixCall::OnDone() {
  RpcEnd end{.method = "GetMatrix", .elapsed = absl::Now() - began_};
  {
    MutexLock lock(mutex_);
    end.code = outcome_->code();
  }
  service_.on_end(end);
  service_.live_calls.Remove(this);
}

void GetMatrixCall::OnBytes(ResultPiece piece) { Send(EncodeMatrixData(std::move(piece))); }

void GetMatrixCall::OnDone(absl::Status status) {
  std::shared_ptr<Download> download;  // destroyed unlocked
  {
    MutexLock lock(mutex_);
    outcome_ = std::move(status);
    download = std::move(download_);
  }
  Advance();
}

void GetMatrixCall::Send(grpc::ByteBuffer message) {
  {
    MutexLock lock(mutex_);
    if (!cancelled_) outbox_.Push(message);
  }
  message.Clear();  // one that was not taken is let go unlocked
  Advance();
}

void GetMatrixCall::Advance() {
  for (;;) {
    const grpc::ByteBuffer* write = nullptr;
    std::optional<grpc::Status> finish;
    {
      MutexLock lock(mutex_);
      if (finished_) return;
      if (outcome_.has_value() && busy_ == 0 && outbox_.idle()) {
        finished_ = true;
        finish = ToGrpc(*outcome_);
      } else {
        write = outbox_.Next();
        if (write == nullptr) return;
        ++busy_;
      }
    }
    if (finish.has_value()) {
      Finish(*std::move(finish));
      return;  // gRPC may be done with this object
    }
    StartWrite(write);
    MutexLock lock(mutex_);
    --busy_;
  }
}

}  // namespace gemmd
