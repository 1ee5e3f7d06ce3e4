#include "client/cpp/calls/retries.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/calls/clock.h"

namespace gemmd::client {
namespace {

namespace v1 = ::gemm::v1;

// What gRPC says where it could not reach a server.
constexpr absl::string_view kNoConnection = "failed to connect";
constexpr char kRetryInfo[] = "type.googleapis.com/google.rpc.RetryInfo";
constexpr char kQuotaFailure[] = "type.googleapis.com/google.rpc.QuotaFailure";

// Up to a bound that doubles from one wait to the next.
absl::Duration RandomWait(const RetryOptions& options, int made) {
  const absl::Duration bound =
      std::min(options.longest_wait, options.first_wait * std::exp2(std::min(made - 1, 30)));
  thread_local std::mt19937 random{std::random_device()()};
  return bound * std::uniform_real_distribution<double>(0, 1)(random);
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  // The canonical codes are the same numbers in both.
  absl::Status made(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  v1::StatusDetails details;
  if (made.ok() || !details.ParseFromString(status.error_details())) return made;
  for (const google::protobuf::Any& one : details.details()) {
    made.SetPayload(one.type_url(), absl::Cord(one.value()));
  }
  return made;
}

absl::Status FromJobError(const v1::JobError& error) {
  const auto code = static_cast<absl::StatusCode>(error.code());
  absl::Status made(code == absl::StatusCode::kOk ? absl::StatusCode::kUnknown : code,
                    error.message());
  if (error.has_retry_info()) {
    made.SetPayload(kRetryInfo, absl::Cord(error.retry_info().SerializeAsString()));
  }
  if (error.has_quota_failure()) {
    made.SetPayload(kQuotaFailure, absl::Cord(error.quota_failure().SerializeAsString()));
  }
  return made;
}

std::optional<absl::Duration> RetryDelay(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kRetryInfo);
  v1::RetryInfo info;
  if (!payload.has_value() || !info.ParseFromString(std::string(*payload))) return std::nullopt;
  const auto& delay = info.retry_delay();
  return std::max(absl::ZeroDuration(),
                  absl::Seconds(delay.seconds()) + absl::Nanoseconds(delay.nanos()));
}

void RetryBudget::OnCall() {
  std::lock_guard<std::mutex> lock(mutex_);
  left_ = std::min(most_, left_ + per_call_);
}

bool RetryBudget::Take() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

Retries::Retries(const RetryOptions& options, RetryBudget& budget, Repeated repeated)
    : options_(options), budget_(budget), repeated_(repeated) {
  budget_.OnCall();
}

std::optional<absl::Duration> Retries::Next(const absl::Status& status, absl::Time deadline) {
  const std::optional<absl::Duration> asked = RetryDelay(status);
  const bool refused = absl::IsResourceExhausted(status) && asked.has_value();
  const bool gone = absl::IsUnavailable(status) && repeated_ == Repeated::kSame;
  if ((!refused && !gone) || made_ >= options_.attempts) return std::nullopt;
  const absl::Duration least = asked.value_or(absl::ZeroDuration());
  if (least > options_.longest_wait) return std::nullopt;
  const absl::Duration wait = least + RandomWait(options_, made_);
  if (SteadyNow() + wait >= deadline || !budget_.Take()) return std::nullopt;
  ++made_;
  if (first_.ok() && absl::IsUnavailable(status)) first_ = status;
  return wait;
}

absl::Status Retries::Told(const absl::Status& last) const {
  if (first_.ok() || !absl::IsUnavailable(last) || first_.message() == last.message() ||
      absl::StrContains(first_.message(), kNoConnection)) {
    return last;
  }
  absl::Status both =
      absl::UnavailableError(absl::StrCat(first_.message(), "; tried again: ", last.message()));
  last.ForEachPayload(
      [&both](absl::string_view url, const absl::Cord& payload) { both.SetPayload(url, payload); });
  return both;
}

}  // namespace gemmd::client
