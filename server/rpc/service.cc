#include "server/rpc/service.h"

#include <memory>

#include "server/rpc/calls/benchmark_call.h"
#include "server/rpc/calls/delete_matrix_call.h"
#include "server/rpc/calls/get_matrix_call.h"
#include "server/rpc/calls/get_server_info_call.h"
#include "server/rpc/calls/list_kernels_call.h"
#include "server/rpc/calls/list_matrices_call.h"
#include "server/rpc/calls/list_traffic_call.h"
#include "server/rpc/calls/multiply_call.h"
#include "server/rpc/calls/multiply_unary_call.h"
#include "server/rpc/calls/put_matrix_call.h"
#include "server/rpc/calls/rank_kernels_call.h"
#include "server/rpc/calls/reload_tuning_call.h"
#include "server/rpc/life/query_call.h"

namespace gemmd {

namespace v1 = gemm::v1;

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
  return Answer(context(), call, &gemmd::ListMatrices, *request, *response);
}

grpc::ServerUnaryReactor* GemmService::DeleteMatrix(grpc::CallbackServerContext* call,
                                                    const v1::DeleteMatrixRequest* request,
                                                    v1::DeleteMatrixResponse* response) {
  return Answer(context(), call, &gemmd::DeleteMatrix, *request, *response);
}

grpc::ServerUnaryReactor* GemmService::ListKernels(grpc::CallbackServerContext* call,
                                                   const v1::ListKernelsRequest* request,
                                                   v1::ListKernelsResponse* response) {
  return Answer(context(), call, &gemmd::ListKernels, *request, *response);
}

grpc::ServerUnaryReactor* GemmService::RankKernels(grpc::CallbackServerContext* call,
                                                   const v1::RankKernelsRequest* request,
                                                   v1::RankKernelsResponse* response) {
  return Answer(context(), call, &gemmd::RankKernels, *request, *response);
}

grpc::ServerUnaryReactor* GemmService::GetServerInfo(grpc::CallbackServerContext* call,
                                                     const v1::GetServerInfoRequest* request,
                                                     v1::GetServerInfoResponse* response) {
  return Answer(context(), call, &gemmd::GetServerInfo, *request, *response);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* GemmService::Benchmark(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request) {
  return AnswerStream::Begin(std::make_shared<BenchmarkCall>(context(), call), *request);
}

grpc::ServerUnaryReactor* GemmService::ReloadTuning(grpc::CallbackServerContext* call,
                                                    const v1::ReloadTuningRequest* /*request*/,
                                                    v1::ReloadTuningResponse* response) {
  return ReloadTuningCall::Begin(context(), call, response);
}

grpc::ServerUnaryReactor* GemmService::ListTraffic(grpc::CallbackServerContext* call,
                                                   const v1::ListTrafficRequest* request,
                                                   v1::ListTrafficResponse* response) {
  return Answer(context(), call, &gemmd::ListTraffic, *request, *response);
}

}  // namespace gemmd
