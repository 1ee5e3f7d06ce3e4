#include "client/cpp/transfers/uploads.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cpp/calls/clock.h"
#include "client/cpp/calls/connection.h"
#include "client/cpp/calls/raw_call.h"
#include "client/cpp/calls/wire.h"
#include "gemmd/client/retry.h"

namespace gemmd::client {
namespace {

using ::gemm::v1::MatrixInfo;
using ::gemm::v1::MatrixRef;
using ::gemm::v1::PutMatrixHeader;
using ::gemm::v1::PutMatrixRequest;
using ::gemm::v1::PutMatrixResponse;

constexpr char kPutMatrix[] = "/gemm.v1.GemmService/PutMatrix";
// For the calls that end an upload.
constexpr absl::Duration kLongestEnding = absl::Seconds(10);
constexpr int kEndingAttempts = 5;

using ThenInfo = std::function<void(const MatrixInfo&)>;

// The first message of a PutMatrix call.
grpc::ByteBuffer UploadMessage(const PutMatrixHeader& header) {
  PutMatrixRequest first;
  *first.mutable_header() = header;
  return Serialize(first);
}

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
    if (!absl::IsResourceExhausted(status) || !asked || ++made_ == kEndingAttempts)
      return task_->Drop();
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
  const absl::Time end_ = std::min(SteadyNow() + kLongestEnding, task_->deadline());
  int made_ = 0;  // calls
};

// A stripe that is refused, or cancelled on its way, ends nothing on the server: stripes that have
// landed would keep the matrix's name and bytes until --upload-timeout. So a call for `stripe`,
// the header of one that has not landed, sends no byte: it fails, and the upload with it. Where
// that is refused, too, it is tried again, for up to ten seconds. The task is held until then, so
// that a further attempt at it finds the name free. Errors are ignored.
void EndUpload(const std::shared_ptr<Task>& task, const PutMatrixHeader& stripe) {
  std::make_shared<UploadEnding>(task, stripe)->Begin();
}

// The answers to the stripes of one upload. Shared by their RPCs.
class UploadState {
 public:
  UploadState(std::shared_ptr<Task> task, const PutMatrixHeader& header, size_t stripes,
              ThenInfo then)
      : task_(std::move(task)),
        replaces_(header.keep().replace()),
        then_(std::move(then)),
        join_(stripes, [this] { End(); }) {}

  void Landed(const PutMatrixResponse& response) {
    std::lock_guard<std::mutex> lock(mutex_);
    // The complete answer alone has the version. With several connections it may not come last.
    if (!complete_) info_ = response.matrix();
    complete_ = complete_ || response.complete();
  }
  // The stripe with this header has ended.
  void Done(const PutMatrixHeader& stripe, const absl::Status& status) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const bool refused = absl::IsResourceExhausted(status);
      may_be_held_ = may_be_held_ || !refused;
      // Rather one that the server surely has nothing of.
      if (refused || (!status.ok() && !missing_)) missing_ = stripe;
    }
    join_.Done();
  }

 private:
  void End() {
    if (!task_->failed() && complete_ && info_.version() == 0) {
      // The server dropped it. Nothing is left to clean up.
      return task_->Fail(absl::AbortedError(absl::StrCat(
          "the matrix with id '", info_.id(), "' was deleted or replaced before it was complete")));
    }
    if (!task_->failed() && !complete_) {
      task_->Fail(absl::InternalError("the server did not say that the upload is complete"));
    }
    if (!task_->failed()) return then_(info_);
    // A replacement that was done stays: the matrix before it is gone.
    if (!info_.id().empty() && !replaces_) {
      MatrixRef landed;
      landed.set_id(info_.id());
      task_->connection().DeleteInBackground(std::move(landed));
    }
    const bool split = missing_ && !missing_->upload_id().empty();
    const bool refused = absl::IsResourceExhausted(task_->status());
    if (split && may_be_held_ && refused) EndUpload(task_, *missing_);
  }

  const std::shared_ptr<Task> task_;
  const bool replaces_;
  const ThenInfo then_;
  std::mutex mutex_;
  MatrixInfo info_;
  bool complete_ = false;
  bool may_be_held_ = false;                // a stripe may have come to the server
  std::optional<PutMatrixHeader> missing_;  // of a stripe that has not landed
  Join join_;
};

// One PutMatrix call: the header, then the chunks of `source` if there are any.
void PutStripe(const std::shared_ptr<Task>& task, int channel, const PutMatrixHeader& header,
               std::shared_ptr<ChunkSource> source, const std::shared_ptr<UploadState>& state) {
  RawCallSpec call{.method = kPutMatrix};
  call.next = [task, source = std::move(source), head = std::make_optional(UploadMessage(header))](
                  grpc::ByteBuffer* message) mutable {
    if (head) {
      *message = *std::exchange(head, std::nullopt);
    } else {
      const ChunkSource::Chunk chunk = source->Next();
      *message = MatrixChunkMessage(chunk.offset, chunk.payload);
      // The chunk before has left, so that this is at most one ahead.
      task->AddDone(chunk.payload.size());
    }
    return source != nullptr && !source->done() ? NextMessage::kMore : NextMessage::kLast;
  };
  call.on_message = [state](const grpc::ByteBuffer& message) {
    PutMatrixResponse response;
    absl::Status status = Parse(message, &response);
    if (status.ok()) state->Landed(response);
    return status;
  };
  call.on_done = [state, header](const absl::Status& status) { state->Done(header, status); };
  task->Stream(channel, std::move(call));
}

}  // namespace

ChunkSource::Chunk ChunkSource::Next() {
  const uint64_t offset = next_;
  const uint64_t length = std::min(chunk_bytes_, end_ - next_);
  next_ += length;
  return {.offset = offset, .payload = WrapMemory(data_ + offset, length, lease_)};
}

void Upload(const std::shared_ptr<Task>& task, const PutMatrixHeader& header,
            const MatrixView& view, const std::vector<Stripe>& stripes, ThenInfo then) {
  task->AddTotal(view.shape.bytes());
  const auto state = std::make_shared<UploadState>(task, header, stripes.size(), std::move(then));
  const std::shared_ptr<const void> lease = task->Lease(view);
  PutMatrixHeader part = header;
  if (stripes.size() > 1) part.set_upload_id(NewTransferId());
  for (const Stripe& stripe : stripes) {
    if (stripes.size() > 1) {
      part.mutable_range()->set_offset(stripe.offset);
      part.mutable_range()->set_length(stripe.length);
    }
    PutStripe(task, stripe.channel, part,
              std::make_shared<ChunkSource>(view.data, lease, stripe.offset, stripe.length,
                                            task->connection().chunk_bytes()),
              state);
  }
}

void UploadGenerated(const std::shared_ptr<Task>& task, const PutMatrixHeader& header,
                     ThenInfo then) {
  const auto state = std::make_shared<UploadState>(task, header, 1, std::move(then));
  PutStripe(task, task->connection().NextChannel(), header, nullptr, state);
}

}  // namespace gemmd::client
