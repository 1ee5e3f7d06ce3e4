#include "server/rpc/calls/multiply_unary_call.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/identity/connection_number.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/codec/requests.h"
#include "server/rpc/context/status.h"

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

MultiplyUnaryCall* MultiplyUnaryCall::Begin(ServiceContext& service,
                                            grpc::CallbackServerContext* call,
                                            const v1::MultiplyUnaryRequest* request,
                                            v1::MultiplyUnaryResponse* response) {
  auto product = std::make_shared<MultiplyUnaryCall>(service, call, response);
  // The message is gRPC's, for this call alone, and not looked at again: its elements can be
  // moved, not copied. gRPC keeps it as long as the call.
  const size_t bytes = request->ByteSizeLong();
  product->GoLiveAtItsRate(bytes, [raw = product.get(), request, bytes] {
    return raw->Start(const_cast<v1::MultiplyUnaryRequest&>(*request), bytes);
  });
  return product.get();
}

absl::Status MultiplyUnaryCall::Start(v1::MultiplyUnaryRequest& request, size_t bytes) {
  absl::Status status = CheckMessageBytes("request", bytes, service_.limits);
  if (!status.ok()) return status;
  if (!request.has_product()) return FieldError("product", "not set");
  absl::StatusOr<ProductRequest> product = ParseProduct(
      *request.mutable_product(), caller(), PayloadRule::kRefused, began_, CallDeadline(*context_));
  if (!product.ok()) return product.status();
  product->spec.quota = QuotaNow(caller());
  product->spec.flow = FlowOf(caller());
  if (product->spec.stream_result) {
    product->spec.check_result = [this](const Shape& result) { return CheckResult(result); };
  }
  absl::StatusOr<std::shared_ptr<Job>> job =
      service_.engine.Admit(std::move(product->spec), Self<MultiplyUnaryCall>());
  if (!job.ok()) return job.status();
  (*job)->Start();
  absl::Status cancelled;
  {
    MutexLock lock(mutex_);
    if (!outcome_.has_value()) job_ = *job;
    if (!stopped_.ok()) cancelled = WhyEnded();
  }
  if (!cancelled.ok()) (*job)->Cancel(std::move(cancelled));
  for (auto& [role, data] : product->inline_data) {
    (*job)->Append(role, 0, std::move(data), []() {});
  }
  return absl::OkStatus();
}

absl::Status MultiplyUnaryCall::CheckResult(const Shape& result) {
  const uint64_t bytes = result.dense_bytes();
  if (absl::Status status = CheckResultBytes(bytes, service_.limits); !status.ok()) return status;
  absl::StatusOr<AnswerBacklog::Place> place =
      service_.answers.Admit(ConnectionOf(context_->c_call()), bytes, CallDeadline(*context_));
  if (!place.ok()) return place.status();
  answer_ = *std::move(place);
  response_->mutable_data()->reserve(bytes);
  return absl::OkStatus();
}

void MultiplyUnaryCall::OnCancelled() {
  std::shared_ptr<Job> job;
  absl::Status why;
  {
    MutexLock lock(mutex_);
    why = WhyEnded();
    job = job_;
  }
  if (job != nullptr) job->Cancel(std::move(why));
}

void MultiplyUnaryCall::OnResult(ResultPiece piece) {
  response_->mutable_data()->append(reinterpret_cast<const char*>(piece.bytes.data()),
                                    piece.bytes.size());
}

void MultiplyUnaryCall::OnDone(absl::StatusOr<JobResult> result) {
  if (result.ok()) {
    Fill(result->report, *response_->mutable_report());
    if (result->kept.has_value()) Fill(*result->kept, *response_->mutable_kept());
    answer_.Hand();
  }
  Charge(response_->data().size());
  std::shared_ptr<Job> job;  // destroyed unlocked
  {
    MutexLock lock(mutex_);
    outcome_ = result.status();
    job = std::move(job_);
  }
  Advance();
}

}  // namespace gemmd
