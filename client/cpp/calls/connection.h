// The channels to one server, and the calls under way on them.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/calls/address.h"
#include "client/cpp/calls/canceller_state.h"
#include "client/cpp/calls/clock.h"
#include "client/cpp/calls/raw_call.h"
#include "client/cpp/calls/retries.h"
#include "client/cpp/calls/task.h"
#include "gemm/v1/gemm.grpc.pb.h"
#include "gemm/v1/gemm.pb.h"
#include "gemmd/client/options.h"
#include "gemmd/client/types.h"
#include "grpcpp/alarm.h"
#include "grpcpp/generic/generic_stub.h"

namespace gemmd::client {

// Thread-safe.
class Connection {
 public:
  // Opens the channels and calls GetServerInfo. INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(ClientOptions options);

  // Cancels the tasks under way and waits for them.
  ~Connection();

  const ClientOptions& options() const { return options_; }
  // Adds what each call shows: the token.
  void Authorize(grpc::ClientContext& context) const;
  const ServerInfo& server() const { return server_; }

  int channels() const { return static_cast<int>(channels_.size()); }
  // What all calls together have for further attempts.
  RetryBudget& retry_budget() { return retry_budget_; }

  // Calls take turns on the channels.
  int NextChannel();
  grpc::GenericStub& generic(int channel) { return *channels_[channel].generic; }
  ::gemm::v1::GemmService::Stub& stub(int channel) { return *channels_[channel].stub; }

  // The largest message that the server accepts.
  uint64_t server_message_bytes() const;
  // Payload bytes of one message.
  uint64_t chunk_bytes() const;
  // A device for several matrices that must lie on the same one: those that are
  // healthy in `now`, the server's latest answer, in turns. Empty where there is no
  // choice.
  std::string PickDevice(const ServerInfo& now);

  absl::Duration Timeout(const CallOptions& options) const;
  absl::Time Deadline(const CallOptions& options) const;
  // How long such a call waits while nothing moves.
  absl::Duration IdleTimeout(const CallOptions& options) const;
  // The error of a call that has waited so long.
  static absl::Status Idle(const char* what, absl::Duration timeout);
  // `status` with a message for users: gRPC's own terse messages are replaced by
  // what ended and why, and UNAVAILABLE names the address. `what` names the call.
  absl::Status Explain(const absl::Status& status, const char* what, absl::Duration timeout,
                       bool cancelled_here) const;

  // A unary RPC on the caller's thread, which takes the fewest thread switches.
  // `method` is one of the generated stub.
  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (::gemm::v1::GemmService::Stub::*method)(grpc::ClientContext*,
                                                                          const Request&,
                                                                          Response*),
                    const char* what, const CallOptions& options, const Request& request,
                    Response* response);

  // Deletes a matrix that the library kept. Does not wait, and ignores errors.
  void DeleteInBackground(::gemm::v1::MatrixRef matrix);

 private:
  friend class Task;
  struct Channel {
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<grpc::GenericStub> generic;
    std::unique_ptr<::gemm::v1::GemmService::Stub> stub;
  };

  explicit Connection(ClientOptions options);
  absl::Status OpenChannels();
  absl::Status LearnToken();
  void Add(const std::shared_ptr<Task>& task);
  // Whether the destructor has begun: it has cancelled the tasks of then, and waits.
  bool closing();
  void Remove(Task* task);
  // While there are tasks without a deadline, an alarm looks at them now and then. With mutex_
  // held.
  void SetIdleAlarm();
  void EndIdleTasks();

  const ClientOptions options_;
  const std::optional<Proxy> proxy_;
  RetryBudget retry_budget_;
  std::string authorization_;  // "Bearer ..."; empty: none
  ServerInfo server_;
  std::vector<Channel> channels_;
  std::atomic<unsigned> next_channel_{0};
  std::atomic<unsigned> next_device_{0};

  std::mutex mutex_;
  std::condition_variable idle_;
  std::map<Task*, std::weak_ptr<Task>> tasks_;  // under mutex_
  bool closing_ = false;                        // under mutex_
  std::unique_ptr<grpc::Alarm> idle_alarm_;     // under mutex_
};

template <typename Request, typename Response>
absl::Status Connection::Call(grpc::Status (::gemm::v1::GemmService::Stub::*method)(
                                  grpc::ClientContext*, const Request&, Response*),
                              const char* what, const CallOptions& options, const Request& request,
                              Response* response) {
  // Shared with the hook, which may be running when the call has ended.
  const auto context = std::make_shared<grpc::ClientContext>();
  Authorize(*context);
  const absl::Time deadline = std::min(Deadline(options), SteadyNow() + IdleTimeout(options));
  if (deadline != absl::InfiniteFuture()) context->set_deadline(GrpcTime(deadline));
  const CancelHook hook(options.canceller, [context] { context->TryCancel(); });
  const grpc::Status status = (stub(NextChannel()).*method)(context.get(), request, response);
  return Explain(FromGrpc(status), what, Timeout(options),
                 options.canceller && options.canceller->cancelled());
}

using AsyncStub = ::gemm::v1::GemmService::StubInterface::async_interface;

// A unary RPC of a task. `done` decides whether the task fails: see Task::Unary. `method` is such
// as &AsyncStub::DeleteMatrix.
template <typename Request, typename Response>
void CallUnary(const std::shared_ptr<Task>& task,
               void (AsyncStub::*method)(grpc::ClientContext*, const Request*, Response*,
                                         std::function<void(grpc::Status)>),
               std::type_identity_t<Request> request,
               std::type_identity_t<std::function<void(absl::Status, Response&)>> done) {
  Connection& connection = task->connection();
  const auto sent = std::make_shared<const Request>(std::move(request));
  task->Unary<Response>(
      [&](grpc::ClientContext* context, Response* response, auto completion) {
        AsyncStub* const stub = connection.stub(connection.NextChannel()).async();
        (stub->*method)(context, sent.get(), response,
                        [sent, completion](grpc::Status status) { completion(status); });
      },
      std::move(done));
}

}  // namespace gemmd::client
