// The gRPC service of the contract. Passes each call to its own class.
#pragma once

#include <atomic>

#include "gemm/v1/gemm.grpc.pb.h"
#include "server/rpc/calls/queries.h"
#include "server/rpc/context/method.h"
#include "server/rpc/context/service_context.h"
#include "server/rpc/life/query_call.h"

namespace gemmd {

// Calls with payload and calls with streams of answers use raw bytes, the others messages.
using GemmRpc = gemm::v1::GemmService;
using GemmServiceMethods =
    ServedBy<GemmRpc::Service, GemmRpc::WithRawCallbackMethod_Multiply,
             GemmRpc::WithCallbackMethod_MultiplyUnary, GemmRpc::WithRawCallbackMethod_PutMatrix,
             GemmRpc::WithRawCallbackMethod_GetMatrix, GemmRpc::WithCallbackMethod_ListMatrices,
             GemmRpc::WithCallbackMethod_DeleteMatrix, GemmRpc::WithCallbackMethod_ListKernels,
             GemmRpc::WithCallbackMethod_RankKernels, GemmRpc::WithCallbackMethod_GetServerInfo,
             GemmRpc::WithRawCallbackMethod_Benchmark, GemmRpc::WithCallbackMethod_ReloadTuning,
             GemmRpc::WithCallbackMethod_ListTraffic>::Type;

// `context` must outlive the server that this is registered with.
class GemmService final : public GemmServiceMethods {
 public:
  explicit GemmService(ServiceContext& context) : context_(context) { made_.fetch_add(1); }

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Multiply(
      grpc::CallbackServerContext* call) override;
  grpc::ServerUnaryReactor* MultiplyUnary(grpc::CallbackServerContext* call,
                                          const gemm::v1::MultiplyUnaryRequest* request,
                                          gemm::v1::MultiplyUnaryResponse* response) override;
  grpc::ServerReadReactor<grpc::ByteBuffer>* PutMatrix(grpc::CallbackServerContext* call,
                                                       grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* GetMatrix(grpc::CallbackServerContext* call,
                                                        const grpc::ByteBuffer* request) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Benchmark(grpc::CallbackServerContext* call,
                                                        const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* ReloadTuning(grpc::CallbackServerContext* call,
                                         const gemm::v1::ReloadTuningRequest* request,
                                         gemm::v1::ReloadTuningResponse* response) override;

  // Queries: each is answered by the function of its name (queries.h).
#define GEMMD_QUERY(method)                                                         \
  grpc::ServerUnaryReactor* method(grpc::CallbackServerContext* call,               \
                                   const gemm::v1::method##Request* request,        \
                                   gemm::v1::method##Response* response) override { \
    return Answer(context(), call, &gemmd::method, *request, *response);            \
  }
  GEMMD_QUERY(ListMatrices)
  GEMMD_QUERY(DeleteMatrix)
  GEMMD_QUERY(ListKernels)
  GEMMD_QUERY(RankKernels)
  GEMMD_QUERY(GetServerInfo)
  GEMMD_QUERY(ListTraffic)
#undef GEMMD_QUERY

 private:
  // Calls read the context through this. gRPC's threads may be older than the service; the
  // atomic shows the thread sanitizer the order that gRPC keeps out of its sight.
  ServiceContext& context() const {
    made_.load();
    return context_;
  }

  ServiceContext& context_;
  static inline std::atomic<int> made_{0};
};

}  // namespace gemmd
