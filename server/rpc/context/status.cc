#include "server/rpc/context/status.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gemm/quote.h"
#include "server/base/clock.h"
#include "server/engine/bounds/bound_error.h"

namespace gemmd {
namespace {

// gRPC sends messages as metadata, of which clients take 8 KiB in all by default.
constexpr size_t kMaxMessageBytes = 1536;
constexpr size_t kMaxDescriptionBytes = 128;

// When a server that cannot do it now, such as one that drains, may be asked again: by then
// another one may have taken its place.
constexpr absl::Duration kUnavailableRetry = absl::Seconds(1);
// In seconds since 1970. A call that may take until then may take for ever.
constexpr int64_t kFarFuture = int64_t{1} << 33;

gemm::v1::RetryInfo RetryIn(absl::Duration delay) {
  gemm::v1::RetryInfo info;
  const int64_t nanoseconds = absl::ToInt64Nanoseconds(delay);
  info.mutable_retry_delay()->set_seconds(nanoseconds / 1'000'000'000);
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(nanoseconds % 1'000'000'000));
  return info;
}

void Add(const google::protobuf::Message& detail, absl::string_view name,
         gemm::v1::StatusDetails& to) {
  google::protobuf::Any& any = *to.add_details();
  any.set_type_url(absl::StrCat("type.googleapis.com/google.rpc.", name));
  any.set_value(detail.SerializeAsString());
}

}  // namespace

std::string MessageOf(const absl::Status& status) {
  return gemm::Printable(status.message(), kMaxMessageBytes);
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // The numbers are the same in both.
  const auto code = static_cast<grpc::StatusCode>(status.raw_code());
  const ErrorDetails details = DetailsOf(status);
  std::string message = MessageOf(status);
  if (!details.retry_info.has_value() && !details.quota_failure.has_value()) {
    return grpc::Status(code, message);
  }
  gemm::v1::StatusDetails sent;
  sent.set_code(status.raw_code());
  sent.set_message(message);
  if (details.retry_info.has_value()) Add(*details.retry_info, "RetryInfo", sent);
  if (details.quota_failure.has_value()) Add(*details.quota_failure, "QuotaFailure", sent);
  return grpc::Status(code, message, sent.SerializeAsString());
}

ErrorDetails DetailsOf(const absl::Status& status) {
  ErrorDetails details;
  if (absl::IsUnavailable(status)) details.retry_info = RetryIn(kUnavailableRetry);
  if (!absl::IsResourceExhausted(status)) return details;
  const ReachedBound reached = ReachedBoundOf(status).value_or(ReachedBound());
  auto& violation = *details.quota_failure.emplace().add_violations();
  violation.set_subject(reached.caller.has_value() ? absl::StrCat("caller:", *reached.caller)
                                                   : "server");
  violation.set_description(reached.bound.empty()
                                ? gemm::Printable(status.message(), kMaxDescriptionBytes)
                                : reached.bound);
  if (reached.retry_after.has_value()) details.retry_info = RetryIn(*reached.retry_after);
  return details;
}

absl::Status FieldError(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

absl::Status CheckNameBytes(absl::string_view name, absl::string_view field) {
  if (!name.empty() && name.size() <= kMaxNameBytes) return absl::OkStatus();
  return FieldError(field, absl::StrCat(name.size(), " bytes; it must have 1 to ", kMaxNameBytes));
}

absl::Time CallDeadline(const grpc::CallbackServerContext& context) {
  // gRPC counts on a steady clock, too. By way of the wall clock, a deadline would be another one
  // while that is set.
  const gpr_timespec deadline = context.raw_deadline();
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  if (left.tv_sec >= kFarFuture) return absl::InfiniteFuture();
  return SteadyNow() + absl::Seconds(left.tv_sec) + absl::Nanoseconds(left.tv_nsec);
}

absl::Status WhyCancelled(const grpc::CallbackServerContext& context) {
  if (SteadyNow() >= CallDeadline(context)) {
    return absl::DeadlineExceededError("the call's deadline has passed");
  }
  return absl::CancelledError("the caller cancelled the call");
}

}  // namespace gemmd
