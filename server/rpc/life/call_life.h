// The life of a call: its reads, its writes and its one end. The base of all calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/identity/connection_number.h"
#include "server/identity/grpc_credentials.h"
#include "server/rpc/context/service_context.h"
#include "server/rpc/watch/call_guard.h"
#include "server/rpc/watch/caller_traffic.h"
#include "server/rpc/watch/live_calls.h"

namespace gemmd {

// The messages that wait to be written to a stream, which takes one at a time. Guarded by its
// owner's lock. Destroying a message may call into the engine, and from there back into the owner.
// So removed messages must be destroyed after unlocking.
class Outbox {
 public:
  void Push(grpc::ByteBuffer& message) { queue_.emplace_back().Swap(&message); }

  // The message to write now. Null if there is none, or if a write is under way. Valid
  // until OnWritten.
  const grpc::ByteBuffer* Next() {
    if (writing_ || queue_.empty()) return nullptr;
    writing_ = true;
    current_.Swap(&queue_.front());
    queue_.pop_front();
    return &current_;
  }

  // Moves the message whose write has ended to `written`.
  void OnWritten(grpc::ByteBuffer& written) {
    writing_ = false;
    written.Swap(&current_);
  }

  // Removes all messages except the one being written.
  std::deque<grpc::ByteBuffer> TakeAll() { return std::exchange(queue_, {}); }

  bool idle() const { return !writing_ && queue_.empty(); }
  size_t waiting() const { return queue_.size(); }

 private:
  std::deque<grpc::ByteBuffer> queue_;
  grpc::ByteBuffer current_;
  bool writing_ = false;
};

// Promises to the call that derives from it:
//
// - One read at a time. A message is handled before the next read starts.
// - One write at a time, in the order of Send. After a cancellation nothing more is
//   written; what waited is dropped.
// - One end: the call finishes with Outcome() once that is known, all messages are
//   written, and no function below is running. It is reported to the service once.
// - The client is watched: see CallGuard.
// - The caller's bounds on open calls and on bytes a second hold: see CallerTraffic.
//
// The lock is never held around a call into gRPC or the engine. Either may call back into
// this object on the same thread, as when the transport releases a result piece and that
// ends its job. So a step is decided under the lock and taken outside it. `busy_` counts
// the threads between the two, so that the call does not finish under them.
//
// Thread-safe. A caller must keep the object alive: gRPC does during its reactions, and
// the engine holds a shared_ptr. reactors.h joins this class to gRPC.
class CallLife : public LiveCall {
 public:
  // Ends the call when its client stalls it.
  void CheckWaits(const Patience& patience) final;
  // Ends a call that has yet to start, or starts it (begins_while_draining). The engine's drain
  // ends the work of other calls, and so the calls.
  void BeginDrain() override;

 protected:
  // `method` lives as long as the process.
  CallLife(ServiceContext& service, grpc::CallbackServerContext* call, absl::string_view method)
      : service_(service),
        context_(call),
        identified_(CallerOf(service.identity, *call, method)),
        method_(method),
        guard_(service, call, method) {}

  // Makes the call live, runs `start`, and takes the first steps. An error of `start`
  // is the call's outcome. Called once, before gRPC gets the reactor. `start` does not run
  // while the server drains, UNAVAILABLE (but: begins_while_draining), nor for a caller who has
  // become unknown since the call was let through, UNAUTHENTICATED, or who has as many calls open
  // as it may, RESOURCE_EXHAUSTED.
  void GoLive(absl::FunctionRef<absl::Status()> start = absl::OkStatus);
  // The same, where `start` begins work: it runs once the caller has made up for what it has
  // moved. It does not run in a call that has ended before, nor for a caller who has become
  // unknown, or has lost the method's role, while the call waited. `request_bytes` of a request
  // that the call holds meanwhile: RESOURCE_EXHAUSTED where those of the caller's calls come to
  // too much. They count towards the caller's rate once, also where the call is refused.
  void GoLiveAtItsRate(uint64_t request_bytes, std::function<absl::Status()> start);

  // What a call answers, under the lock.
  //
  // Its final status once its work has ended; nullopt before.
  virtual std::optional<absl::Status> Outcome() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return outcome_;
  }
  // Whether the call begins also while the server drains. Then the engine says what may be done.
  virtual bool begins_while_draining() const { return false; }
  // Whether the next message may be read now.
  virtual bool WantsRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return false; }

  // What a call does, without the lock.
  //
  // Handles a message, and may take it.
  virtual void OnMessage(grpc::ByteBuffer& /*message*/) {}
  // No more messages come: the client has half-closed or is gone.
  virtual void OnInputEnd() {}
  // A message was written, so there is room for another.
  virtual void OnWritten() {}
  // The call is cancelled: by the client, its deadline or its guard. Ends its work soon.
  virtual void OnCancelled() {}
  // The caller's rate lets the server read no more of the call for now, or go on. Under the lock.
  virtual void OnHeldBack(bool /*held_back*/) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {}
  // Ends the work whose promised payload did not come in time.
  virtual void CheckPayload(const Patience& /*patience*/) {}
  // The call is as old as a connection may get (--max-connection-age). Accepts no new work,
  // and ends the call when the work under way has ended. Called again and again.
  virtual void GrowOld() {}

  // Takes all steps that are due. Call it after a change to what Outcome or WantsRead
  // answer.
  void Advance();
  // Appends a message to those that wait. Drops it if the call is to end.
  void Send(grpc::ByteBuffer message);
  // Tells the service that the call has ended, with `code`. Only the first report
  // counts; at the end there is one in any case.
  void ReportEnd(absl::StatusCode code);
  // Why a cancelled call was.
  absl::Status WhyEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Describes how the client stalls its payload, for log and metrics.
  Stall PayloadStall(const Patience& patience) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return guard_.DescribeStall(StalledOn::kPayload, patience.payload);
  }

  // Finishes the call as the reactor does.
  using GrpcFinish = void (*)(CallLife& call, grpc::Status status);

  // gRPC's reactions, passed on by the reactor.
  void ReadEnds(bool ok);
  void WriteEnds();
  void Cancelled();
  void Ended();

  // Who began the call, as of when its work began. Not for calls that GoLive has ended.
  const Caller& caller() const { return **identified_; }
  // Who calls, by what the callers file says now. Asked before each job and each upload, so that
  // a call that is open begins none for a token that is gone, or that has lost the method's role.
  // UNAUTHENTICATED, PERMISSION_DENIED.
  absl::StatusOr<CallerPtr> CallerNow() const {
    return CallerOf(service_.identity, *context_, method_);
  }
  // What the caller may have, by what the quotas file says now. Holds for what the call moves
  // from here on.
  CallerQuotaPtr QuotaNow(const Caller& caller);
  // Counts bytes towards the caller's rate that no stream moves: of a unary call's answer.
  void Charge(uint64_t bytes);
  // Whose turn the call's work takes (JobSpec::flow): the caller's, or the connection's where
  // the server asks nobody, so that one client does not wait for all that another one sent.
  std::string FlowOf(const Caller& caller) const {
    return caller.name.empty() ? absl::StrCat("#", ConnectionOf(context_->c_call())) : caller.name;
  }

  ServiceContext& service_;
  grpc::CallbackServerContext* const context_;
  const absl::Time began_ = SteadyNow();

  Mutex mutex_;
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  PayloadClock payload_clock_ ABSL_GUARDED_BY(mutex_);
  // Why the call is to end early, once it is: nothing more is read or sent.
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);
  // Of the work, once it has ended.
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mutex_);

 private:
  // Written again by OnWake alone, before the work begins.
  absl::StatusOr<CallerPtr> identified_;

  struct Step {
    bool read = false;
    const grpc::ByteBuffer* write = nullptr;
    std::optional<absl::Status> finish;
    GrpcFinish finish_with = nullptr;
  };

  // gRPC's operations, as the reactor has them. The last one is looked up under the lock,
  // which orders that before the destructor: OnDone takes the lock, too.
  virtual void GrpcRead(grpc::ByteBuffer* /*into*/) {}
  virtual void GrpcWrite(const grpc::ByteBuffer* /*message*/) {}
  virtual GrpcFinish FinishFunction() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

  // Whether the caller's rate allows more now. If not, this is asked again when it does.
  bool RateAllows() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the call's work may begin: a server that drains soon has nothing more to give.
  bool MayStart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return (draining_ && begins_while_draining()) || RateAllows();
  }
  void OnWake();
  // Who calls now: still the same caller. UNAUTHENTICATED, PERMISSION_DENIED.
  absl::StatusOr<CallerPtr> CallerAtWake();
  // Takes the call's place among its caller's.
  absl::Status CountCall();
  // Has the start wait, or says why it may not.
  absl::Status WaitToStart(std::function<absl::Status()> start)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives up a start that waits for the caller's rate, with `why`.
  void DropStart(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountRead(uint64_t bytes);
  bool Decide(Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enter();
  void Leave();

  const absl::string_view method_;
  std::shared_ptr<std::atomic<int64_t>> bytes_read_;  // of its connection; null: nobody asks
  grpc::ByteBuffer incoming_;  // the read under way, or the message being handled
  CallGuard guard_ ABSL_GUARDED_BY(mutex_);
  TrafficShare traffic_ ABSL_GUARDED_BY(mutex_);
  std::function<absl::Status()> start_ ABSL_GUARDED_BY(mutex_);  // while it waits
  uint64_t request_bytes_ ABSL_GUARDED_BY(mutex_) = 0;           // of the call's one request
  bool waits_for_rate_ ABSL_GUARDED_BY(mutex_) = false;
  bool waking_ ABSL_GUARDED_BY(mutex_) = false;    // OnWake will be called
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;  // nothing more begins to wait
  int busy_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool reported_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusCode final_code_ ABSL_GUARDED_BY(mutex_) = absl::StatusCode::kOk;
};

}  // namespace gemmd
