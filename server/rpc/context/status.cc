#include "server/rpc/context/status.h"

#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "gemm/quote.h"
#include "server/base/clock.h"

namespace gemmd {
namespace {

// gRPC sends messages as metadata, of which clients take 8 KiB in all by default.
constexpr size_t kMaxMessageBytes = 1536;

}  // namespace

std::string MessageOf(const absl::Status& status) {
  return gemm::Printable(status.message(), kMaxMessageBytes);
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // The numbers are the same in both.
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()), MessageOf(status));
}

absl::Status FieldError(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

absl::Status CheckNameBytes(absl::string_view name, absl::string_view field) {
  if (!name.empty() && name.size() <= kMaxNameBytes) return absl::OkStatus();
  return FieldError(field, absl::StrCat(name.size(), " bytes; it must have 1 to ", kMaxNameBytes));
}

absl::Time CallDeadline(const grpc::CallbackServerContext& context) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return absl::InfiniteFuture();
  // gRPC counts on a steady clock, too, and converts as the wall clock goes now.
  return FromWall(absl::FromChrono(deadline));
}

absl::Status WhyCancelled(const grpc::CallbackServerContext& context) {
  if (SteadyNow() >= CallDeadline(context)) {
    return absl::DeadlineExceededError("the call's deadline has passed");
  }
  return absl::CancelledError("the caller cancelled the call");
}

}  // namespace gemmd
