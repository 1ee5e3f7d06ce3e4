#include "server/rpc/unary_product.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/replies.h"
#include "server/rpc/requests.h"
#include "server/rpc/status.h"

namespace gemmd {

namespace v1 = gemm::v1;

namespace {

// Room for the report around the result's elements.
constexpr size_t kReportBytes = 4 * kKiB;

absl::Status TooLong(uint64_t bytes, const RpcLimits& limits) {
  return absl::InvalidArgumentError(
      absl::StrCat("product.result.stream: ", bytes, " bytes of result and ", kReportBytes,
                   " around them do not fit one message; this server's limit is ",
                   limits.max_message_bytes, ": call Multiply, or keep the result resident"));
}

// The dense size of the streamed result, or 0 where it is known only to the
// engine or there is none.
uint64_t ResultBytes(const JobSpec& spec) {
  if (!spec.stream_result || !spec.a.shape.has_value() || !spec.b.shape.has_value()) return 0;
  const int64_t m = spec.transpose_a ? spec.a.shape->cols : spec.a.shape->rows;
  const int64_t n = spec.transpose_b ? spec.b.shape->rows : spec.b.shape->cols;
  const gemm::DType type = spec.output_type.value_or(spec.a.shape->type);
  const Shape result = {m, n, type, spec.output_column_major};
  // A shape past the engine's bound is for the engine to refuse.
  return CheckShape(result, "result").ok() ? result.dense_bytes() : 0;
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
  const uint64_t result_bytes = ResultBytes(product->spec);
  if (result_bytes + kReportBytes > service_.limits.max_message_bytes) {
    return TooLong(result_bytes, service_.limits);
  }
  response_->mutable_data()->reserve(result_bytes);
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
    end.elapsed = absl::Now() - began_;
  }
  service_.on_end(end);
  service_.live_calls.Remove(this);
}

void UnaryProduct::OnResult(ResultPiece piece) {
  std::string& data = *response_->mutable_data();
  const uint64_t bytes = data.size() + piece.bytes.size();
  if (bytes + kReportBytes > service_.limits.max_message_bytes) {
    // Only resident operands without a shape come this far.
    std::shared_ptr<Job> job;
    {
      MutexLock lock(mutex_);
      job = job_;
    }
    if (job != nullptr) job->Cancel(TooLong(bytes, service_.limits));
    return;
  }
  data.append(reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size());
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
  }
  // Before Begin has returned gRPC keeps this for later, and until then this
  // object.
  Finish(ToGrpc(status));
}

}  // namespace gemmd
