// One Multiply call: many jobs on one stream.
//
// The stream is not read while the engine has more than the read window to take, or
// while the client leaves too many answers unread. The staging blocks that wait to be
// sent are the stream's own share of the pool. The engine calls from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/engine/job/job.h"
#include "server/rpc/codec/codec.h"
#include "server/rpc/context/method.h"
#include "server/rpc/context/service_context.h"
#include "server/rpc/life/reactors.h"

namespace gemmd {

// Remembers the most recent ids, in bounded memory.
class RecentIds {
 public:
  explicit RecentIds(size_t capacity) : capacity_(capacity) {}

  // Forgets the oldest id if there is no room.
  void Add(uint64_t id) {
    if (!ids_.insert(id).second) return;
    order_.push_back(id);
    if (order_.size() <= capacity_) return;
    ids_.erase(order_.front());
    order_.pop_front();
  }
  bool Contains(uint64_t id) const { return ids_.count(id) > 0; }

 private:
  const size_t capacity_;
  std::unordered_set<uint64_t> ids_;
  std::deque<uint64_t> order_;
};

class MultiplyCall final : public BidiStreamingCall {
 public:
  // The reactor lives until the call and all of its jobs have ended.
  static MultiplyCall* Begin(ServiceContext& service, grpc::CallbackServerContext* call);

  MultiplyCall(ServiceContext& service, grpc::CallbackServerContext* call)
      : BidiStreamingCall(service, call, MethodOf<gemm::v1::MultiplyRequest>()) {}

  void BeginDrain() override;

 private:
  // Passes the engine's calls for one job to the stream.
  class JobRelay;

  // How many ids of ended jobs are remembered. Chunks that were on their way when a job
  // failed are then dropped without an error of their own.
  static constexpr size_t kRememberedIds = 4096;
  // How many answers may wait for the client before the stream stops reading.
  static constexpr size_t kMaxWaitingAnswers = 1024;

  struct LiveJob {
    std::shared_ptr<Job> job;     // null from Reserve until it has started
    absl::Duration last_payload;  // by payload_clock_: when its header or last bytes came
  };

  std::optional<absl::Status> Outcome() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WantsRead() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnMessage(grpc::ByteBuffer& message) override;
  void OnInputEnd() override { EndInput(absl::OkStatus()); }
  void OnCancelled() override;
  void CheckPayload(const Patience& patience) override;
  void GrowOld() override;
  // Ends the stream when the jobs that it has have ended.
  void TakeNoMoreJobs(absl::Status why);

  std::vector<std::shared_ptr<Job>> StartedJobs() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The jobs for which nothing has arrived for `payload_timeout`.
  std::vector<std::shared_ptr<Job>> QuietJobs(absl::Duration payload_timeout) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void HandleHeader(gemm::v1::MultiplyHeader header, size_t message_bytes);
  void HandleChunk(OperandBytes chunk, size_t message_bytes);
  void HandleCancel(const gemm::v1::CancelJob& cancel);
  // Handles no more messages; `why` is the call's status.
  void EndInput(absl::Status why);

  // Enters the id among the live jobs.
  absl::Status Reserve(uint64_t job_id);
  // Admits and starts the job, and passes on the elements that the header has.
  absl::Status Open(gemm::v1::MultiplyHeader& header);
  // Null, without an error, if the job has ended. NOT_FOUND for an unknown id.
  absl::StatusOr<std::shared_ptr<Job>> FindJob(uint64_t job_id, absl::string_view field);
  // Passes bytes to the engine. `held_bytes`: the memory that they keep in use.
  void Append(uint64_t job_id, Job& job, Role role, uint64_t offset, absl::Cord data,
              size_t held_bytes);
  void Consumed(size_t bytes);

  void OnResult(uint64_t job_id, ResultPiece piece);
  void OnJobDone(uint64_t job_id, absl::StatusOr<JobResult> result);
  void SendError(uint64_t job_id, const absl::Status& status);

  const ReceiverId receiver_ = NewReceiver();
  uint64_t messages_ = 0;  // received; only the reading side uses it

  std::unordered_map<uint64_t, LiveJob> jobs_ ABSL_GUARDED_BY(mutex_);  // not yet ended
  RecentIds ended_ ABSL_GUARDED_BY(mutex_){kRememberedIds};
  size_t unconsumed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool input_open_ ABSL_GUARDED_BY(mutex_) = true;
  absl::Status leaving_ ABSL_GUARDED_BY(mutex_);  // why it takes no new jobs
  absl::Status input_error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
