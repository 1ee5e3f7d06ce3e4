// The life of a call: its reads, its writes and its one end. The base of all calls.
#pragma once

#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/identity/grpc_credentials.h"
#include "server/rpc/context/service_context.h"
#include "server/rpc/life/outbox.h"
#include "server/rpc/watch/call_guard.h"
#include "server/rpc/watch/live_calls.h"

namespace gemmd {

// Promises to the call that derives from it:
//
// - One read at a time. A message is handled before the next read starts.
// - One write at a time, in the order of Send. After a cancellation nothing more is
//   written; what waited is dropped.
// - One end: the call finishes with Outcome() once that is known, all messages are
//   written, and no function below is running. It is reported to the service once.
// - The client is watched: see CallGuard.
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
  // Does nothing: the engine's own drain ends the work, and so the call.
  void BeginDrain() override {}

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
  // for a caller who has become unknown since the call was let through: UNAUTHENTICATED.
  void GoLive(absl::FunctionRef<absl::Status()> start = absl::OkStatus);

  // What a call answers, under the lock.
  //
  // Its final status once its work has ended; nullopt before.
  virtual std::optional<absl::Status> Outcome() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return outcome_;
  }
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
  // Ends what the client has promised and not sent in time.
  virtual void CheckPayload(const Patience& /*patience*/) {}

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

  // Who began the call. Not for calls that GoLive has ended.
  const Caller& caller() const { return **identified_; }
  // Who calls, by what the callers file says now. Asked before each job and each upload, so that
  // a call that is open begins none for a token that is gone, or that has lost the method's role.
  // UNAUTHENTICATED, PERMISSION_DENIED.
  absl::StatusOr<CallerPtr> CallerNow() const {
    return CallerOf(service_.identity, *context_, method_);
  }

  ServiceContext& service_;
  grpc::CallbackServerContext* const context_;
  const absl::Time began_ = SteadyNow();

  Mutex mutex_;
  Outbox outbox_ ABSL_GUARDED_BY(mutex_);
  // Why the call is to end early, once it is: nothing more is read or sent.
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);
  // Of the work, once it has ended.
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mutex_);

 private:
  const absl::StatusOr<CallerPtr> identified_;

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

  bool Decide(Step& step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enter();
  void Leave();

  const absl::string_view method_;
  grpc::ByteBuffer incoming_;  // the read under way, or the message being handled
  CallGuard guard_ ABSL_GUARDED_BY(mutex_);
  int busy_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool reported_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusCode final_code_ ABSL_GUARDED_BY(mutex_) = absl::StatusCode::kOk;
};

}  // namespace gemmd
