#include "server/rpc/unary_product.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/rpc/replies.h"
#include "server/rpc/requests.h"
#include "server/rpc/status.h"

namespace gemmd {

namespace v1 = gemm::v1;

namespace {

// Room for the report around the result's elements.
constexpr size_t kReportBytes = 4 * kKiB;

absl::Status CheckResultBytes(uint64_t bytes, const RpcLimits& limits) {
  if (bytes + kReportBytes <= limits.max_message_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("product.result.stream: ", bytes, " bytes of result and ", kReportBytes,
                   " around them do not fit one message; this server's limit is ",
                   limits.max_message_bytes, ": call Multiply, or keep the result resident"));
}

}  // namespace

UnaryProduct* UnaryProduct::Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                                  const v1::MultiplyUnaryRequest* request,
                                  v1::MultiplyUnaryResponse* response) {
  auto product = std::make_shared<UnaryProduct>(service, call, response);
  UnaryProduct* const raw = product.get();
  service.live_calls.Add(std::move(product));
  {
    // Whoever calls back later sees what the constructor wrote.
    MutexLock lock(raw->mutex_);
  }
  // The message is gRPC's, for this call alone, and not looked at again: its
  // elements can be moved, not copied.
  absl::Status status = raw->Start(const_cast<v1::MultiplyUnaryRequest&>(*request));
  if (!status.ok()) raw->End(status);
  return raw;
}

absl::Status UnaryProduct::Start(v1::MultiplyUnaryRequest& request) {
  absl::Status status = CheckMessageBytes("request", request.ByteSizeLong(), service_.limits);
  if (!status.ok()) return status;
  if (!request.has_product()) return FieldError("product", "not set");
  absl::StatusOr<ProductRequest> product =
      ParseProduct(*request.mutable_product(), PayloadRule::kRefused, began_, CallDeadline(*call_));
  if (!product.ok()) return product.status();
  if (product->spec.stream_result) {
    product->spec.check_result = [this](const Shape& result) {
      absl::Status status = CheckResultBytes(result.dense_bytes(), service_.limits);
      if (status.ok()) response_->mutable_data()->reserve(result.dense_bytes());
      return status;
    };
  }
  absl::StatusOr<std::shared_ptr<Job>> job =
      service_.engine.Admit(std::move(product->spec), Self<UnaryProduct>());
  if (!job.ok()) return job.status();
  (*job)->Start();
  bool cancelled;
  {
    MutexLock lock(mutex_);
    if (!ended_) job_ = *job;
    cancelled = cancelled_;
  }
  if (cancelled) (*job)->Cancel(WhyCancelled(*call_));
  for (auto& [role, data] : product->inline_data) {
    (*job)->Append(role, 0, std::move(data), []() {});
  }
  return absl::OkStatus();
}

void UnaryProduct::OnCancel() {
  std::shared_ptr<Job> job;
  {
    MutexLock lock(mutex_);
    cancelled_ = true;
    job = job_;
  }
  if (job != nullptr) job->Cancel(WhyCancelled(*call_));
}

void UnaryProduct::OnDone() {
  RpcEnd end{.method = "MultiplyUnary"};
  {
    MutexLock lock(mutex_);
    end.code = final_code_;
    end.elapsed = SteadyNow() - began_;
    guard_.CallIsDone();
  }
  service_.on_end(end);
  service_.live_calls.Remove(this);
}

void UnaryProduct::CheckWaits(const Patience& patience) {
  const CallEnding ending = [&] {
    MutexLock lock(mutex_);
    return guard_.CheckSend(patience);
  }();
}

void UnaryProduct::OnResult(ResultPiece piece) {
  response_->mutable_data()->append(reinterpret_cast<const char*>(piece.bytes.data()),
                                    piece.bytes.size());
}

void UnaryProduct::OnDone(absl::StatusOr<JobResult> result) {
  if (result.ok()) {
    Fill(result->report, *response_->mutable_report());
    if (result->kept.has_value()) Fill(*result->kept, *response_->mutable_kept());
  }
  End(result.status());
}

void UnaryProduct::End(const absl::Status& status) {
  std::shared_ptr<Job> job;  // destroyed unlocked
  {
    MutexLock lock(mutex_);
    ended_ = true;
    job = std::move(job_);
    final_code_ = status.code();
    guard_.SendBegins();
  }
  // Before Begin has returned gRPC keeps this for later, and until then this
  // object.
  Finish(ToGrpc(status));
}

}  // namespace gemmd
