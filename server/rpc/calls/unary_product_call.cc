#include "server/rpc/calls/unary_product_call.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/context/status.h"

namespace gemmd {
namespace {

// Room for the report around the result's elements.
constexpr size_t kReportBytes = 4 * kKiB;

}  // namespace

absl::Status CheckResultBytes(absl::string_view field, uint64_t bytes, const RpcLimits& limits) {
  if (bytes + kReportBytes <= limits.max_message_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": ", bytes, " bytes of result and ", kReportBytes,
      " around them do not fit one message; this server's limit is ", limits.max_message_bytes,
      " (its flag --max-message-bytes): call Multiply of gemm.v1, or keep the result resident"));
}

void UnaryProductCall::Begin(size_t request_bytes) {
  GoLiveAtItsRate(request_bytes, [this, request_bytes] {
    absl::Status status = Start(request_bytes);
    if (!status.ok()) OnProduct(status);
    return status;
  });
}

absl::Status UnaryProductCall::Start(size_t request_bytes) {
  absl::Status status = CheckMessageBytes("request", request_bytes, service_.limits);
  if (!status.ok()) return status;
  absl::StatusOr<ProductRequest> product = TakeProduct();
  if (!product.ok()) return product.status();
  product->spec.quota = QuotaNow(caller());
  product->spec.flow = FlowOf(caller());
  if (product->spec.stream_result) {
    product->spec.check_result = [this](const Shape& result) { return CheckResult(result); };
  }
  absl::StatusOr<std::shared_ptr<Job>> job =
      service_.engine.Admit(std::move(product->spec), Self<UnaryProductCall>());
  if (!job.ok()) return job.status();
  OnAdmitted();
  (*job)->Start();
  absl::Status cancelled;
  {
    MutexLock lock(mutex_);
    if (!outcome_.has_value()) job_ = *job;
    if (!stopped_.ok()) cancelled = WhyEnded();
  }
  if (!cancelled.ok()) (*job)->Cancel(std::move(cancelled));
  SendOperands(*job, *product);
  return absl::OkStatus();
}

void UnaryProductCall::SendOperands(const std::shared_ptr<Job>& job, ProductRequest& product) {
  for (auto& [role, data] : product.inline_data) {
    job->Append(role, 0, std::move(data), []() {});
  }
}

absl::Status UnaryProductCall::CheckResult(const Shape& result) {
  const uint64_t bytes = result.dense_bytes();
  if (absl::Status status = CheckResultBytes(result_field(), bytes, service_.limits); !status.ok())
    return status;
  result_data().reserve(bytes);
  return absl::OkStatus();
}

void UnaryProductCall::OnCancelled() {
  std::shared_ptr<Job> job;
  absl::Status why;
  {
    MutexLock lock(mutex_);
    why = WhyEnded();
    job = job_;
  }
  if (job != nullptr) job->Cancel(std::move(why));
}

void UnaryProductCall::OnResult(ResultPiece piece) {
  result_data().append(reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size());
}

void UnaryProductCall::OnDone(absl::StatusOr<JobResult> result) {
  OnProduct(result);
  Charge(result_data().size());
  std::shared_ptr<Job> job;  // destroyed unlocked
  {
    MutexLock lock(mutex_);
    outcome_ = result.status();
    job = std::move(job_);
  }
  Advance();
}

namespace v1 = gemm::v1;

MultiplyUnaryCall* MultiplyUnaryCall::Begin(ServiceContext& service,
                                            grpc::CallbackServerContext* call,
                                            const v1::MultiplyUnaryRequest* request,
                                            v1::MultiplyUnaryResponse* response) {
  // The message is gRPC's, for this call alone, and not looked at again: its elements can be
  // moved, not copied. gRPC keeps it as long as the call.
  auto& own = const_cast<v1::MultiplyUnaryRequest&>(*request);
  const auto product = std::make_shared<MultiplyUnaryCall>(service, call, own, *response);
  product->UnaryProductCall::Begin(request->ByteSizeLong());
  return product.get();
}

absl::StatusOr<ProductRequest> MultiplyUnaryCall::TakeProduct() {
  if (!request_.has_product()) return FieldError("product", "not set");
  return ParseProduct(*request_.mutable_product(), caller(), PayloadRule::kRefused, began_,
                      CallDeadline(*context_));
}

void MultiplyUnaryCall::OnProduct(const absl::StatusOr<JobResult>& result) {
  if (!result.ok()) return;
  Fill(result->report, *response_.mutable_report());
  if (result->kept.has_value()) Fill(*result->kept, *response_.mutable_kept());
}

}  // namespace gemmd
