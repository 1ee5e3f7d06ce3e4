// One Multiply call: many jobs on one stream.
//
// Reads and writes are independent. Reads: one at a time, each handled before the next
// starts, so the engine gets a job's bytes in order. The stream is not read while the
// engine has more than the read window to take, or while the client leaves too many
// answers unread. Writes: through an outbox, one at a time. The staging blocks that wait
// there are the stream's own share of the pool. The engine calls from any thread.
//
// The lock is never held around a call into the engine or gRPC: either may call back
// into this object on the same thread, as when the transport releases a result piece and
// that ends its job. So a step is decided under the lock and taken outside it. `busy_`
// counts the threads between the two, so that the call does not finish under them.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/engine/job/job.h"
#include "server/rpc/call_guard.h"
#include "server/rpc/codec.h"
#include "server/rpc/live_calls.h"
#include "server/rpc/outbox.h"
#include "server/rpc/payload_clock.h"
#include "server/rpc/recent_ids.h"
#include "server/rpc/service_context.h"

namespace gemmd {

class MultiplyStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                             public LiveCall {
 public:
  // The reactor lives until the call and all of its jobs have ended.
  static MultiplyStream* Begin(ServiceContext& service, grpc::CallbackServerContext* call);

  MultiplyStream(ServiceContext& service, grpc::CallbackServerContext* call)
      : service_(service), call_(call), guard_(service, call, "Multiply") {}

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void BeginDrain() override;
  void CheckWaits(const Patience& patience) override;

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

  struct Step {
    bool read = false;
    const grpc::ByteBuffer* write = nullptr;
    std::optional<grpc::Status> finish;
  };

  // Takes all steps that are due.
  void Advance();
  bool Decide(Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayFinish() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  grpc::Status FinalStatus() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WhyEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::shared_ptr<Job>> StartedJobs() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The jobs for which nothing has arrived for `payload_timeout`.
  std::vector<std::shared_ptr<Job>> QuietJobs(absl::Duration payload_timeout) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Handles one received message.
  void Handle();
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
  void CountUnconsumed(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void OnResult(uint64_t job_id, ResultPiece piece);
  void OnJobDone(uint64_t job_id, absl::StatusOr<JobResult> result);
  void SendError(uint64_t job_id, const absl::Status& status);
  void Send(grpc::ByteBuffer message);

  ServiceContext& service_;
  grpc::CallbackServerContext* const call_;
  const ReceiverId receiver_ = NewReceiver();
  const absl::Time began_ = SteadyNow();
  grpc::ByteBuffer incoming_;  // the read under way, or the message being handled
  uint64_t messages_ = 0;      // received; only the reading side uses it

  Mutex mutex_;
  CallGuard guard_ ABSL_GUARDED_BY(mutex_);
  PayloadClock payload_clock_ ABSL_GUARDED_BY(mutex_);
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, LiveJob> jobs_ ABSL_GUARDED_BY(mutex_);  // not yet ended
  RecentIds ended_ ABSL_GUARDED_BY(mutex_){kRememberedIds};
  size_t unconsumed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int busy_ ABSL_GUARDED_BY(mutex_) = 1;  // Begin
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool input_open_ ABSL_GUARDED_BY(mutex_) = true;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status input_error_ ABSL_GUARDED_BY(mutex_);
  absl::StatusCode final_code_ ABSL_GUARDED_BY(mutex_) = absl::StatusCode::kOk;
};

}  // namespace gemmd
