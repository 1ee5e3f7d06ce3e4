// A unary RPC of a task, by the method of the generated stub.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "client/cpp/calls/connection.h"
#include "client/cpp/calls/task.h"
#include "gemm/v1/gemm.grpc.pb.h"
#include "grpcpp/client_context.h"

namespace gemmd::client {

using AsyncStub = ::gemm::v1::GemmService::StubInterface::async_interface;

// `done` decides whether the task fails: see Task::Unary. `method` is such as
// &AsyncStub::DeleteMatrix.
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
