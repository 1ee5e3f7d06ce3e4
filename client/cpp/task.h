// One call of the library's user: made of one or more RPCs, ended once.
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
#include "absl/time/time.h"
#include "client/cpp/canceller_state.h"
#include "client/cpp/matrix.h"
#include "client/cpp/options.h"
#include "client/cpp/raw_call.h"
#include "grpcpp/client_context.h"

namespace gemmd::client {

class Connection;

// Calls `then` at the last of `count` calls of Done. Thread-safe.
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

// Lives while something holds it: each RPC under way, each lease on the
// caller's memory, and whoever is between two RPCs. When the last hold is
// dropped the task has ended and tells so. The first failure is its status, and
// cancels every RPC under way. Thread-safe.
class Task : public std::enable_shared_from_this<Task> {
 public:
  using Finish = std::function<void(absl::Status)>;

  // Begins with one hold, the caller's. `what` names the call in messages.
  // `finish` runs once, with the status as the user is to see it.
  static std::shared_ptr<Task> Begin(Connection& connection, const CallOptions& options,
                                     const char* what, Finish finish);

  Connection& connection() { return connection_; }
  absl::Time deadline() const { return deadline_; }

  void Hold();
  void Drop() { DropHold(false); }

  // The first failure counts; OK does nothing. ABORTED, with which a stripe ends
  // that the server gave up because another one failed, gives way to that
  // one's own status, and cancels nothing so as not to hide it.
  void Fail(absl::Status why);
  bool failed() const;

  // Starts a streaming RPC. Its failure fails the task. on_done is called
  // whether it failed or not; the task is held meanwhile.
  void Stream(int channel, RawCallSpec spec);

  // Starts a unary RPC of the generated stub's async interface: `start(context,
  // response, completion)`. `done` is told of its end and decides whether the
  // task fails; the task is held meanwhile.
  template <typename Response, typename Start>
  void Unary(Start start, std::function<void(absl::Status, Response&)> done);

  // Keeps the view's memory: its owner, or a hold on this task.
  std::shared_ptr<const void> Lease(const MatrixView& view);

  // Payload still to move, and moved.
  void AddTotal(uint64_t bytes);
  void AddDone(uint64_t bytes);

 private:
  Task(Connection& connection, const CallOptions& options, const char* what, Finish finish);

  // `inside_transport`: the end must be told from another thread.
  void DropHold(bool inside_transport);
  void End();
  // Runs `cancel` when the task fails, until Forget; at once where it has.
  uint64_t OnFailure(std::function<void()> cancel);
  void Forget(uint64_t id);
  void PrepareContext(grpc::ClientContext& context) const;

  Connection& connection_;
  const absl::Time deadline_;
  const absl::Duration timeout_;
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
