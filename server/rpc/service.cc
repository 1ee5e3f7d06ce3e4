#include "server/rpc/service.h"

#include <memory>
#include <optional>
#include <utility>

#include "server/rpc/benchmark_call.h"
#include "server/rpc/get_matrix_call.h"
#include "server/rpc/multiply_call.h"
#include "server/rpc/multiply_unary_call.h"
#include "server/rpc/put_matrix_call.h"
#include "server/rpc/queries.h"
#include "server/rpc/reactors.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

// A call that is answered at once, by `query`. It lives until its client has taken the
// answer, and ends for log and metrics when the answer is there.
class QueryCall final : public UnaryCall {
 public:
  template <typename Query>
  static QueryCall* Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                          absl::string_view method, Query query) {
    const auto answered = std::make_shared<QueryCall>(service, call, method);
    QueryCall* const raw = answered.get();
    raw->GoLive([&] {
      absl::Status status = query();
      raw->ReportEnd(status.code());
      MutexLock lock(raw->mutex_);
      raw->outcome_ = std::move(status);
    });
    return raw;
  }

  QueryCall(ServiceContext& service, grpc::CallbackServerContext* call, absl::string_view method)
      : UnaryCall(service, call, method) {}

  void BeginDrain() override {}

 private:
  std::optional<absl::Status> Outcome() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return outcome_;
  }

  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mutex_);
};

// Answers a call at once. `method` is a literal.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* Answer(ServiceContext& context, const char* method,
                                 grpc::CallbackServerContext* call,
                                 absl::Status (*query)(ServiceContext&, const Request&, Response&),
                                 const Request& request, Response& response) {
  return QueryCall::Begin(context, call, method, [&] { return query(context, request, response); });
}

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* GemmService::Multiply(
    grpc::CallbackServerContext* call) {
  return MultiplyCall::Begin(context(), call);
}

grpc::ServerUnaryReactor* GemmService::MultiplyUnary(grpc::CallbackServerContext* call,
                                                     const v1::MultiplyUnaryRequest* request,
                                                     v1::MultiplyUnaryResponse* response) {
  return MultiplyUnaryCall::Begin(context(), call, request, response);
}

grpc::ServerReadReactor<grpc::ByteBuffer>* GemmService::PutMatrix(grpc::CallbackServerContext* call,
                                                                  grpc::ByteBuffer* response) {
  return PutMatrixCall::Begin(context(), call, response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* GemmService::GetMatrix(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request) {
  return AnswerStream::Begin(std::make_shared<GetMatrixCall>(context(), call), *request);
}

grpc::ServerUnaryReactor* GemmService::ListMatrices(grpc::CallbackServerContext* call,
                                                    const v1::ListMatricesRequest* request,
                                                    v1::ListMatricesResponse* response) {
  return Answer(context(), "ListMatrices", call, &gemmd::ListMatrices, *request, *response);
}

grpc::ServerUnaryReactor* GemmService::DeleteMatrix(grpc::CallbackServerContext* call,
                                                    const v1::DeleteMatrixRequest* request,
                                                    v1::DeleteMatrixResponse* response) {
  return Answer(context(), "DeleteMatrix", call, &gemmd::DeleteMatrix, *request, *response);
}

grpc::ServerUnaryReactor* GemmService::ListKernels(grpc::CallbackServerContext* call,
                                                   const v1::ListKernelsRequest* request,
                                                   v1::ListKernelsResponse* response) {
  return Answer(context(), "ListKernels", call, &gemmd::ListKernels, *request, *response);
}

grpc::ServerUnaryReactor* GemmService::GetServerInfo(grpc::CallbackServerContext* call,
                                                     const v1::GetServerInfoRequest* request,
                                                     v1::GetServerInfoResponse* response) {
  return Answer(context(), "GetServerInfo", call, &gemmd::GetServerInfo, *request, *response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* GemmService::Benchmark(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request) {
  return AnswerStream::Begin(std::make_shared<BenchmarkCall>(context(), call), *request);
}

}  // namespace gemmd
