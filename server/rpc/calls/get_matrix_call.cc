#include "server/rpc/calls/get_matrix_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gemm/v1/gemm.pb.h"
#include "server/rpc/codec/codec.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/codec/requests.h"
#include "server/rpc/context/status.h"

namespace gemmd {

namespace v1 = gemm::v1;

absl::Status GetMatrixCall::Start(const grpc::ByteBuffer& message) {
  v1::GetMatrixRequest request;
  if (!Parse(message, request)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request's ", message.Length(), " bytes are not a GetMatrixRequest"));
  }
  absl::StatusOr<DownloadSpec> spec = ParseDownload(request, caller(), CallDeadline(*context_));
  if (!spec.ok()) return spec.status();
  spec->receiver = receiver_;
  absl::StatusOr<std::shared_ptr<Download>> download =
      service_.engine.BeginDownload(*std::move(spec), Self<GetMatrixCall>());
  if (!download.ok()) return download.status();
  v1::GetMatrixResponse first;
  Fill((*download)->matrix(), *first.mutable_matrix());
  first.set_offset((*download)->range().offset);
  Send(Serialize(first));
  (*download)->Start();
  absl::Status stopped;
  {
    MutexLock lock(mutex_);
    if (!outcome_.has_value()) download_ = *download;
    stopped = stopped_;
  }
  if (!stopped.ok()) (*download)->Cancel(std::move(stopped));
  return absl::OkStatus();
}

void GetMatrixCall::CancelWork(const absl::Status& why) {
  std::shared_ptr<Download> download;
  {
    MutexLock lock(mutex_);
    download = download_;
  }
  if (download != nullptr) download->Cancel(why);
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

}  // namespace gemmd
