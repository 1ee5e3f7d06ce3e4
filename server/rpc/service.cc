#include "server/rpc/service.h"

#include <memory>

#include "server/rpc/calls/benchmark_call.h"
#include "server/rpc/calls/get_matrix_call.h"
#include "server/rpc/calls/multiply_call.h"
#include "server/rpc/calls/put_matrix_call.h"
#include "server/rpc/calls/reload_tuning_call.h"
#include "server/rpc/calls/unary_product_call.h"

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

grpc::ServerWriteReactor<grpc::ByteBuffer>* GemmService::Benchmark(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request) {
  return AnswerStream::Begin(std::make_shared<BenchmarkCall>(context(), call), *request);
}

grpc::ServerUnaryReactor* GemmService::ReloadTuning(grpc::CallbackServerContext* call,
                                                    const v1::ReloadTuningRequest* /*request*/,
                                                    v1::ReloadTuningResponse* response) {
  return ReloadTuningCall::Begin(context(), call, response);
}

}  // namespace gemmd
