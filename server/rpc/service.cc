#include "server/rpc/service.h"

#include "server/engine/clock.h"
#include "server/rpc/benchmark_call.h"
#include "server/rpc/get_matrix_call.h"
#include "server/rpc/multiply_stream.h"
#include "server/rpc/put_matrix_call.h"
#include "server/rpc/queries.h"
#include "server/rpc/status.h"
#include "server/rpc/unary_product.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

// Answers a call at once.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* Answer(ServiceContext& context, absl::string_view method,
                                 grpc::CallbackServerContext* call,
                                 absl::Status (*query)(ServiceContext&, const Request&, Response&),
                                 const Request& request, Response& response) {
  const absl::Time began = SteadyNow();
  const absl::Status status = query(context, request, response);
  context.on_end({.method = method, .code = status.code(), .elapsed = SteadyNow() - began});
  grpc::ServerUnaryReactor* const reactor = call->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* GemmService::Multiply(
    grpc::CallbackServerContext* call) {
  return MultiplyStream::Begin(context_, call);
}

grpc::ServerUnaryReactor* GemmService::MultiplyUnary(grpc::CallbackServerContext* call,
                                                     const v1::MultiplyUnaryRequest* request,
                                                     v1::MultiplyUnaryResponse* response) {
  return UnaryProduct::Begin(context_, call, request, response);
}

grpc::ServerReadReactor<grpc::ByteBuffer>* GemmService::PutMatrix(grpc::CallbackServerContext* call,
                                                                  grpc::ByteBuffer* response) {
  return PutMatrixCall::Begin(context_, call, response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* GemmService::GetMatrix(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request) {
  return WriteCall::Begin(std::make_shared<GetMatrixCall>(context_, call), *request);
}

grpc::ServerUnaryReactor* GemmService::ListMatrices(grpc::CallbackServerContext* call,
                                                    const v1::ListMatricesRequest* request,
                                                    v1::ListMatricesResponse* response) {
  return Answer(context_, "ListMatrices", call, &gemmd::ListMatrices, *request, *response);
}

grpc::ServerUnaryReactor* GemmService::DeleteMatrix(grpc::CallbackServerContext* call,
                                                    const v1::DeleteMatrixRequest* request,
                                                    v1::DeleteMatrixResponse* response) {
  return Answer(context_, "DeleteMatrix", call, &gemmd::DeleteMatrix, *request, *response);
}

grpc::ServerUnaryReactor* GemmService::ListKernels(grpc::CallbackServerContext* call,
                                                   const v1::ListKernelsRequest* request,
                                                   v1::ListKernelsResponse* response) {
  return Answer(context_, "ListKernels", call, &gemmd::ListKernels, *request, *response);
}

grpc::ServerUnaryReactor* GemmService::GetServerInfo(grpc::CallbackServerContext* call,
                                                     const v1::GetServerInfoRequest* request,
                                                     v1::GetServerInfoResponse* response) {
  return Answer(context_, "GetServerInfo", call, &gemmd::GetServerInfo, *request, *response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* GemmService::Benchmark(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request) {
  return WriteCall::Begin(std::make_shared<BenchmarkCall>(context_, call), *request);
}

}  // namespace gemmd
