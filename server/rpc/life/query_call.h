// The calls that are answered at once, without waiting.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "server/rpc/context/method.h"
#include "server/rpc/context/service_context.h"
#include "server/rpc/life/reactors.h"

namespace gemmd {

// A call that is answered at once, by `query`, which takes the caller. It lives until its client
// has taken the answer, and ends for log and metrics when the answer is there.
class QueryCall final : public UnaryCall {
 public:
  template <typename Query>
  static QueryCall* Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                          absl::string_view method, Query query) {
    const auto answered = std::make_shared<QueryCall>(service, call, method);
    QueryCall* const raw = answered.get();
    raw->GoLive([&] {
      const absl::Status status = query(raw->caller());
      raw->ReportEnd(status.code());
      MutexLock lock(raw->mutex_);
      raw->outcome_ = status;
      return absl::OkStatus();
    });
    return raw;
  }

  QueryCall(ServiceContext& service, grpc::CallbackServerContext* call, absl::string_view method)
      : UnaryCall(service, call, method),
        deletes_(method == MethodOf<gemm::v1::DeleteMatrixRequest>()) {}

 private:
  // A client that has fetched a result may delete it.
  bool begins_while_draining() const override { return deletes_; }

  const bool deletes_;
};

// Answers a call with what `query` says.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* Answer(ServiceContext& service, grpc::CallbackServerContext* call,
                                 absl::Status (*query)(ServiceContext&, const Caller&,
                                                       const Request&, Response&),
                                 const Request& request, Response& response) {
  return QueryCall::Begin(service, call, MethodOf<Request>(), [&](const Caller& caller) {
    return query(service, caller, request, response);
  });
}

}  // namespace gemmd
