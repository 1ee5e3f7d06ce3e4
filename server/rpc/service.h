// The gRPC service of the contract. Passes each call to its own class.
#pragma once

#include <atomic>

#include "gemm/v1/gemm.grpc.pb.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

// Calls with payload and calls with streams of answers use raw bytes, the others messages.
using GemmServiceMethods = gemm::v1::GemmService::WithRawCallbackMethod_Multiply<
    gemm::v1::GemmService::WithCallbackMethod_MultiplyUnary<
        gemm::v1::GemmService::WithRawCallbackMethod_PutMatrix<
            gemm::v1::GemmService::WithRawCallbackMethod_GetMatrix<
                gemm::v1::GemmService::WithCallbackMethod_ListMatrices<
                    gemm::v1::GemmService::WithCallbackMethod_DeleteMatrix<
                        gemm::v1::GemmService::WithCallbackMethod_ListKernels<
                            gemm::v1::GemmService::WithCallbackMethod_RankKernels<
                                gemm::v1::GemmService::WithCallbackMethod_GetServerInfo<
                                    gemm::v1::GemmService::WithRawCallbackMethod_Benchmark<
                                        gemm::v1::GemmService::WithCallbackMethod_ReloadTuning<
                                            gemm::v1::GemmService::WithCallbackMethod_ListTraffic<
                                                gemm::v1::GemmService::Service>>>>>>>>>>>>;

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
  grpc::ServerUnaryReactor* ListMatrices(grpc::CallbackServerContext* call,
                                         const gemm::v1::ListMatricesRequest* request,
                                         gemm::v1::ListMatricesResponse* response) override;
  grpc::ServerUnaryReactor* DeleteMatrix(grpc::CallbackServerContext* call,
                                         const gemm::v1::DeleteMatrixRequest* request,
                                         gemm::v1::DeleteMatrixResponse* response) override;
  grpc::ServerUnaryReactor* ListKernels(grpc::CallbackServerContext* call,
                                        const gemm::v1::ListKernelsRequest* request,
                                        gemm::v1::ListKernelsResponse* response) override;
  grpc::ServerUnaryReactor* RankKernels(grpc::CallbackServerContext* call,
                                        const gemm::v1::RankKernelsRequest* request,
                                        gemm::v1::RankKernelsResponse* response) override;
  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* call,
                                          const gemm::v1::GetServerInfoRequest* request,
                                          gemm::v1::GetServerInfoResponse* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Benchmark(grpc::CallbackServerContext* call,
                                                        const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* ReloadTuning(grpc::CallbackServerContext* call,
                                         const gemm::v1::ReloadTuningRequest* request,
                                         gemm::v1::ReloadTuningResponse* response) override;
  grpc::ServerUnaryReactor* ListTraffic(grpc::CallbackServerContext* call,
                                        const gemm::v1::ListTrafficRequest* request,
                                        gemm::v1::ListTrafficResponse* response) override;

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
