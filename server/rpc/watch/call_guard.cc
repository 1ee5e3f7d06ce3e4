#include "server/rpc/watch/call_guard.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/watch/drop_connection.h"

namespace gemmd {

CallEnding::CallEnding(ServiceContext& service, grpc_call* call, Stall stall,
                       const absl::Status& why)
    : service_(&service), call_(call), stall_(std::move(stall)), why_(why) {
  grpc_call_ref(call_);
}

CallEnding::CallEnding(CallEnding&& other) noexcept
    : service_(other.service_),
      call_(std::exchange(other.call_, nullptr)),
      stall_(std::move(other.stall_)),
      why_(std::move(other.why_)) {}

CallEnding::~CallEnding() {
  if (call_ == nullptr) return;
  // The first of a connection's calls drops it.
  if (!stall_.drop_connection || DropConnection(stall_.peer)) service_->on_stall(stall_);
  grpc_call_cancel_with_status(call_, static_cast<grpc_status_code>(why_.raw_code()),
                               std::string(why_.message()).c_str(), nullptr);
  grpc_call_unref(call_);
}

CallEnding CallGuard::CheckSend(const Patience& patience) {
  if (call_ == nullptr || dropped_ || !sending_since_.has_value()) return {};
  const absl::Duration waited = patience.now - *sending_since_;
  if (waited < (why_.ok() ? patience.send : 2 * patience.send)) return {};
  Stall stall = DescribeStall(StalledOn::kSend, waited);
  if (!why_.ok()) {
    stall.drop_connection = dropped_ = true;
    stall.peer = peer_;
    return CallEnding(service_, call_->c_call(), std::move(stall), why_);
  }
  peer_ = stall.peer;
  why_ = absl::DeadlineExceededError(
      absl::StrCat("the client took nothing of the answer for ",
                   absl::FormatDuration(patience.send), " (the server's flag --send-timeout is ",
                   absl::FormatDuration(service_.limits.send_timeout), ")"));
  return CallEnding(service_, call_->c_call(), std::move(stall), why_);
}

Stall CallGuard::DescribeStall(StalledOn on, absl::Duration waited) const {
  return {
      .method = method_, .on = on, .peer = call_ == nullptr ? "" : call_->peer(), .waited = waited};
}

}  // namespace gemmd
