#include "server/rpc/calls/put_matrix_call.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gemm/v1/gemm.pb.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/codec/requests.h"
#include "server/rpc/context/status.h"

namespace gemmd {

namespace v1 = gemm::v1;

PutMatrixCall* PutMatrixCall::Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                                    grpc::ByteBuffer* response) {
  auto put = std::make_shared<PutMatrixCall>(service, call, response);
  put->GoLive();
  return put.get();
}

bool PutMatrixCall::WantsRead() const {
  return input_open_ && !outcome_.has_value() &&
         unconsumed_bytes_ < service_.limits.read_window_bytes;
}

void PutMatrixCall::OnMessage(grpc::ByteBuffer& message) {
  {
    MutexLock lock(mutex_);
    last_message_ = payload_clock_.Elapsed();
  }
  absl::Status status = Handle(message);
  *held_back_ = false;
  if (!status.ok()) Fail(std::move(status));
}

void PutMatrixCall::OnInputEnd() {
  {
    MutexLock lock(mutex_);
    last_message_ = payload_clock_.Elapsed();
    input_open_ = false;
  }
  *held_back_ = false;
  absl::Status status = HandleEnd();
  if (!status.ok()) Fail(std::move(status));
}

void PutMatrixCall::OnCancelled() {
  absl::Status why;
  {
    MutexLock lock(mutex_);
    why = WhyEnded();
  }
  Fail(std::move(why));
}

void PutMatrixCall::BeginDrain() {
  {
    MutexLock lock(mutex_);
    // A call that the engine knows of ends with the engine's own draining.
    if (!began_upload_ && !outcome_.has_value()) {
      input_open_ = false;
      outcome_ = absl::UnavailableError("the server is draining; upload elsewhere or later");
    }
  }
  Advance();
}

void PutMatrixCall::CheckPayload(const Patience& patience) {
  Stall stall;
  {
    MutexLock lock(mutex_);
    const bool quiet = input_open_ && !outcome_.has_value() &&
                       payload_clock_.Elapsed() - last_message_ >= patience.payload;
    if (!quiet) return;
    stall = PayloadStall(patience);
  }
  service_.on_stall(stall);
  Fail(absl::DeadlineExceededError(
      absl::StrCat("nothing came for ", absl::FormatDuration(patience.payload),
                   " (the server's flag --payload-timeout): neither bytes nor the half-close")));
  Advance();
}

absl::Status PutMatrixCall::Handle(grpc::ByteBuffer& incoming) {
  const uint64_t index = messages_++;
  const size_t bytes = incoming.Length();
  absl::StatusOr<PutMatrixMessage> message = DecodePutMatrix(incoming);
  incoming.Clear();
  if (!message.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("message ", index,
                     " of the stream is not a PutMatrixRequest: ", message.status().message()));
  }
  if (absl::Status status = CheckMessageBytes("message", bytes, service_.limits); !status.ok()) {
    return status;
  }
  if (const auto* header = std::get_if<v1::PutMatrixHeader>(&*message)) {
    if (index == 0) return HandleHeader(*header);
    return FieldError("header", absl::StrCat("again, as message ", index,
                                             " of the stream; only the first may be one"));
  }
  if (index == 0) return FieldError("chunk", "the first message of the stream must be the header");
  return HandleChunk(std::get<MatrixBytes>(*std::move(message)), bytes);
}

absl::Status PutMatrixCall::HandleHeader(const v1::PutMatrixHeader& header) {
  const absl::StatusOr<CallerPtr> caller = CallerNow();
  if (!caller.ok()) return caller.status();
  absl::StatusOr<UploadSpec> spec = ParseUpload(header, **caller, CallDeadline(*context_));
  if (!spec.ok()) return spec.status();
  spec->quota = QuotaNow(**caller);
  spec->held_back = held_back_;
  spec->flow = FlowOf(**caller);
  if (spec->generator.has_value()) {
    to_generate_ = *std::move(spec);
    return absl::OkStatus();
  }
  return BeginUpload(*std::move(spec));
}

absl::Status PutMatrixCall::BeginUpload(UploadSpec spec) {
  {
    MutexLock lock(mutex_);
    if (outcome_.has_value()) return absl::OkStatus();  // cancelled or draining
    began_upload_ = true;
  }
  absl::StatusOr<std::shared_ptr<Upload>> upload = service_.engine.BeginUpload(
      std::move(spec), [self = Self<PutMatrixCall>()](absl::StatusOr<UploadResult> result) {
        self->OnUploadDone(std::move(result));
      });
  if (!upload.ok()) {
    MutexLock lock(mutex_);
    began_upload_ = false;
    return upload.status();
  }
  (*upload)->Start();
  absl::Status cancelled;
  {
    MutexLock lock(mutex_);
    if (!outcome_.has_value()) upload_ = *upload;
    cancelled = stopped_.ok() ? failed_ : WhyEnded();
  }
  if (!cancelled.ok()) (*upload)->Cancel(std::move(cancelled));
  return absl::OkStatus();
}

absl::Status PutMatrixCall::HandleChunk(MatrixBytes chunk, size_t message_bytes) {
  if (to_generate_.has_value()) {
    return FieldError("chunk", "the header has a generator, so no elements are uploaded");
  }
  if (chunk.data.empty()) return FieldError("chunk.data", "empty");
  {
    MutexLock lock(mutex_);
    unconsumed_bytes_ += message_bytes;
  }
  Append(std::move(chunk), message_bytes);
  return absl::OkStatus();
}

absl::Status PutMatrixCall::HandleEnd() {
  // If the client is gone, OnCancel says so.
  if (context_->IsCancelled()) return absl::OkStatus();
  if (messages_ == 0) return FieldError("header", "the stream ended without one");
  if (to_generate_.has_value()) {
    // The header may be long ago, and the token be another caller's since.
    const absl::StatusOr<CallerPtr> caller = CallerNow();
    if (!caller.ok()) return caller.status();
    if ((*caller)->name != to_generate_->keep.owner) {
      return absl::UnauthenticatedError(
          "the credentials are those of another caller since the header came: begin anew");
    }
    return BeginUpload(*std::exchange(to_generate_, std::nullopt));
  }
  std::shared_ptr<Upload> upload;
  {
    MutexLock lock(mutex_);
    upload = upload_;
  }
  if (upload != nullptr) upload->EndOfPayload();
  return absl::OkStatus();
}

void PutMatrixCall::Append(MatrixBytes chunk, size_t accounted_bytes) {
  std::shared_ptr<Upload> upload;
  {
    MutexLock lock(mutex_);
    upload = upload_;
  }
  if (upload == nullptr) return Consumed(accounted_bytes);  // the call has failed
  upload->Append(
      chunk.offset, std::move(chunk.data),
      [self = Self<PutMatrixCall>(), accounted_bytes]() { self->Consumed(accounted_bytes); });
}

void PutMatrixCall::Fail(absl::Status why) {
  std::shared_ptr<Upload> upload;
  {
    MutexLock lock(mutex_);
    input_open_ = false;
    if (outcome_.has_value()) return;
    upload = upload_;
    // An upload that has begun and not started is cancelled once it has.
    if (began_upload_) {
      failed_ = why;
    } else {
      outcome_ = why;
    }
  }
  if (upload != nullptr) upload->Cancel(std::move(why));
}

void PutMatrixCall::OnUploadDone(absl::StatusOr<UploadResult> result) {
  if (result.ok()) {
    v1::PutMatrixResponse response;
    Fill(result->matrix, *response.mutable_matrix());
    response.set_complete(result->complete);
    response.set_bytes_received(result->bytes);
    Fill(result->elapsed, *response.mutable_elapsed());
    *response_ = Serialize(response);
  }
  std::shared_ptr<Upload> upload;  // destroyed unlocked
  {
    MutexLock lock(mutex_);
    outcome_ = result.status();
    upload = std::move(upload_);
  }
  Advance();
}

void PutMatrixCall::Consumed(size_t bytes) {
  {
    MutexLock lock(mutex_);
    unconsumed_bytes_ -= bytes;
  }
  Advance();
}

void PutMatrixCall::OnHeldBack(bool held_back) {
  // Not reset where the call goes on: the bytes that were held back have yet to come.
  if (held_back) *held_back_ = true;
}

}  // namespace gemmd
