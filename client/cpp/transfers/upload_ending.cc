#include "client/cpp/transfers/upload_ending.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/calls/clock.h"
#include "client/cpp/calls/connection.h"
#include "client/cpp/calls/raw_call.h"
#include "client/cpp/calls/wire.h"
#include "gemmd/client/retry.h"

namespace gemmd::client {
namespace {

using ::gemm::v1::PutMatrixHeader;
using ::gemm::v1::PutMatrixRequest;

constexpr absl::Duration kLongest = absl::Seconds(10);
constexpr int kAttempts = 5;

// Makes one call at a time, each as a task of its own: `task` has failed, and would cancel it.
class UploadEnding : public std::enable_shared_from_this<UploadEnding> {
 public:
  UploadEnding(std::shared_ptr<Task> task, PutMatrixHeader stripe)
      : task_(std::move(task)), stripe_(std::move(stripe)) {}

  void Begin() {
    task_->Hold();
    Call();
  }

 private:
  std::shared_ptr<Task> Within(Task::Finish finish) {
    return Task::BeginCleanUp(task_->connection(), {.timeout = end_ - SteadyNow()}, "PutMatrix",
                              std::move(finish));
  }

  void Call() {
    if (SteadyNow() >= end_) return task_->Drop();
    const auto attempt = Within(
        [self = shared_from_this()](const absl::Status& status) { self->AfterCall(status); });
    RawCallSpec call{.method = kPutMatrix};
    call.next = OnlyMessage(UploadMessage(stripe_));
    call.on_message = [](const grpc::ByteBuffer&) { return absl::OkStatus(); };
    call.on_done = [](const absl::Status&) {};
    attempt->Stream(task_->connection().NextChannel(), std::move(call));
    attempt->Drop();
  }

  void AfterCall(const absl::Status& status) {
    // Stripes that have just ended may still count towards the caller's open calls.
    const std::optional<absl::Duration> asked = RetryDelay(status);
    if (!absl::IsResourceExhausted(status) || !asked || ++made_ == kAttempts) return task_->Drop();
    const absl::Duration wait = *asked * (1 << (made_ - 1));
    if (SteadyNow() + wait >= end_) return task_->Drop();
    const auto waiting = Within([self = shared_from_this()](const absl::Status& waited) {
      waited.ok() ? self->Call() : self->task_->Drop();
    });
    waiting->Wait(wait);
    waiting->Drop();
  }

  const std::shared_ptr<Task> task_;
  const PutMatrixHeader stripe_;
  const absl::Time end_ = std::min(SteadyNow() + kLongest, task_->deadline());
  int made_ = 0;  // calls
};

}  // namespace

grpc::ByteBuffer UploadMessage(const PutMatrixHeader& header) {
  PutMatrixRequest first;
  *first.mutable_header() = header;
  return Serialize(first);
}

void EndUpload(const std::shared_ptr<Task>& task, const PutMatrixHeader& stripe) {
  std::make_shared<UploadEnding>(task, stripe)->Begin();
}

}  // namespace gemmd::client
