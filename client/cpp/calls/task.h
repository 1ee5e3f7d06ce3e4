// One call of the library's user. It consists of one or more RPCs and ends once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cpp/calls/canceller_state.h"
#include "client/cpp/calls/raw_call.h"
#include "gemmd/client/matrix.h"
#include "gemmd/client/options.h"
#include "grpcpp/client_context.h"

namespace gemmd::client {

class Connection;

// The message of calls that a client's destructor has ended.
inline constexpr absl::string_view kDestroyed = "the client was destroyed";

// Calls `then` when Done is called for the `count`-th time. Thread-safe.
class Join {
 public:
  Join(size_t count, std::function<void()> then) : left_(count), then_(std::move(then)) {}
  void Done() {
    if (left_.fetch_sub(1) == 1) std::exchange(then_, nullptr)();
  }

 private:
  std::atomic<size_t> left_;
  std::function<void()> then_;
};

// Lives as long as it is held: by each RPC under way, by each lease on the caller's
// memory, and by code between two RPCs. When the last hold is dropped, the task has
// ended and calls `finish`. Its status is the first failure, which also cancels
// every RPC under way. Thread-safe.
class Task : public std::enable_shared_from_this<Task> {
 public:
  using Finish = std::function<void(absl::Status)>;

  // Begins with one hold, the caller's. `what` names the call in messages.
  // `finish` runs once, with the status for the user. If the client is being destroyed, the task
  // has failed from its start: it may be a further attempt, which the destructor did not see.
  static std::shared_ptr<Task> Begin(Connection& connection, const CallOptions& options,
                                     const char* what, Finish finish);
  // For what cleans up after a call: it may begin while the client is being destroyed, which
  // waits for it. Its time-out must be short.
  static std::shared_ptr<Task> BeginCleanUp(Connection& connection, const CallOptions& options,
                                            const char* what, Finish finish);

  Connection& connection() { return connection_; }
  absl::Time deadline() const { return deadline_; }
  // Whether it has to end when nothing moves for a while.
  bool may_be_idle() const { return idle_timeout_ != absl::InfiniteDuration(); }
  // Ends it where nothing was sent or received for so long.
  void FailIfIdle();

  void Hold();
  void Drop() { DropHold(false); }

  // The first failure counts; OK does nothing. ABORTED is the exception: the server
  // ends a stripe with it when another stripe has failed. So it cancels nothing, and
  // the status of the stripe that failed replaces it.
  void Fail(absl::Status why);
  bool failed() const;
  // What it has failed with so far, for the library alone: users get Explain's. OK: not failed.
  absl::Status status() const;

  // Starts a streaming RPC. Its failure fails the task. on_done is called in any
  // case. The task is held until then.
  void Stream(int channel, RawCallSpec spec);

  // Starts a unary RPC of the generated stub's async interface: `start(context,
  // response, completion)`. `done` is called at its end and decides whether the task
  // fails. The task is held until then.
  template <typename Response, typename Start>
  void Unary(Start start, std::function<void(absl::Status, Response&)> done);

  // Holds the task for this time, or until it fails.
  void Wait(absl::Duration time);

  // Keeps the view's memory alive: its owner, or a hold on this task.
  std::shared_ptr<const void> Lease(const MatrixView& view);

  // Payload still to move, and moved.
  void AddTotal(uint64_t bytes);
  void AddDone(uint64_t bytes);

 private:
  Task(Connection& connection, const CallOptions& options, const char* what, Finish finish);

  // `inside_transport`: `finish` must run on another thread.
  void DropHold(bool inside_transport);
  void End();
  // Runs `cancel` when the task fails, or at once where it has failed; not after
  // Forget.
  uint64_t OnFailure(std::function<void()> cancel);
  void Forget(uint64_t id);
  void PrepareContext(grpc::ClientContext& context) const;
  // Something was sent or received.
  void Moved();

  Connection& connection_;
  const absl::Time deadline_;
  const absl::Duration timeout_;
  const absl::Duration idle_timeout_;
  std::atomic<int64_t> moved_ns_;  // of SteadyNow, when something last did
  const char* const what_;
  const Progress progress_;
  Finish finish_;
  std::unique_ptr<CancelHook> cancel_hook_;

  mutable std::mutex mutex_;  // guards what follows
  size_t holds_ = 1;
  absl::Status status_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, std::function<void()>> cancels_;

  std::mutex progress_mutex_;  // held while progress_ is told
  uint64_t done_bytes_ = 0;
  uint64_t total_bytes_ = 0;
};

template <typename Response, typename Start>
void Task::Unary(Start start, std::function<void(absl::Status, Response&)> done) {
  struct Call {
    grpc::ClientContext context;
    Response response;
    std::function<void(absl::Status, Response&)> done;
  };
  auto call = std::make_shared<Call>();
  call->done = std::move(done);
  PrepareContext(call->context);
  Hold();
  const uint64_t id = OnFailure([weak = std::weak_ptr<Call>(call)] {
    if (const auto live = weak.lock()) live->context.TryCancel();
  });
  start(&call->context, &call->response,
        [self = shared_from_this(), call, id](grpc::Status status) {
          self->Forget(id);
          std::exchange(call->done, nullptr)(FromGrpc(status), call->response);
          self->Drop();
        });
}

}  // namespace gemmd::client
