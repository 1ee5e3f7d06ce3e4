// The Open Inference Protocol, as Triton's and KServe's clients speak it. Passes each call to its
// own class.
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "inference/inference.grpc.pb.h"
#include "server/rpc/context/method.h"
#include "server/rpc/context/service_context.h"
#include "server/rpc/inference/model_counters.h"
#include "server/rpc/inference/shared_memory.h"

namespace gemmd {

using InferenceRpc = inference::GRPCInferenceService;
using InferenceServiceMethods = ServedBy<
    InferenceRpc::Service, InferenceRpc::WithCallbackMethod_ServerLive,
    InferenceRpc::WithCallbackMethod_ServerReady, InferenceRpc::WithCallbackMethod_ModelReady,
    InferenceRpc::WithCallbackMethod_ServerMetadata, InferenceRpc::WithCallbackMethod_ModelMetadata,
    InferenceRpc::WithRawCallbackMethod_ModelInfer,
    InferenceRpc::WithRawCallbackMethod_ModelStreamInfer,
    InferenceRpc::WithCallbackMethod_ModelConfig, InferenceRpc::WithCallbackMethod_ModelStatistics,
    InferenceRpc::WithCallbackMethod_RepositoryIndex,
    InferenceRpc::WithCallbackMethod_SystemSharedMemoryStatus,
    InferenceRpc::WithCallbackMethod_SystemSharedMemoryRegister,
    InferenceRpc::WithCallbackMethod_SystemSharedMemoryUnregister,
    InferenceRpc::WithCallbackMethod_CudaSharedMemoryStatus,
    InferenceRpc::WithCallbackMethod_CudaSharedMemoryRegister,
    InferenceRpc::WithCallbackMethod_CudaSharedMemoryUnregister>::Type;

// `context` must outlive the server that this is registered with.
class InferenceService final : public InferenceServiceMethods {
 public:
  static constexpr const char* Name() {
    return inference::GRPCInferenceService::service_full_name();
  }

  // `ready`: whether the server is to get calls. From any thread; must be quick.
  // `shared_memory`: --client-shared-memory.
  InferenceService(ServiceContext& context, std::function<bool()> ready, bool shared_memory)
      : context_(context), ready_(std::move(ready)), memory_(shared_memory) {
    made_.fetch_add(1);
  }

  grpc::ServerUnaryReactor* ServerLive(grpc::CallbackServerContext* call,
                                       const inference::ServerLiveRequest* request,
                                       inference::ServerLiveResponse* response) override;
  grpc::ServerUnaryReactor* ServerReady(grpc::CallbackServerContext* call,
                                        const inference::ServerReadyRequest* request,
                                        inference::ServerReadyResponse* response) override;
  grpc::ServerUnaryReactor* ModelReady(grpc::CallbackServerContext* call,
                                       const inference::ModelReadyRequest* request,
                                       inference::ModelReadyResponse* response) override;
  grpc::ServerUnaryReactor* ServerMetadata(grpc::CallbackServerContext* call,
                                           const inference::ServerMetadataRequest* request,
                                           inference::ServerMetadataResponse* response) override;
  grpc::ServerUnaryReactor* ModelMetadata(grpc::CallbackServerContext* call,
                                          const inference::ModelMetadataRequest* request,
                                          inference::ModelMetadataResponse* response) override;
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* call,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ModelStreamInfer(
      grpc::CallbackServerContext* call) override;
  grpc::ServerUnaryReactor* ModelConfig(grpc::CallbackServerContext* call,
                                        const inference::ModelConfigRequest* request,
                                        inference::ModelConfigResponse* response) override;
  grpc::ServerUnaryReactor* ModelStatistics(grpc::CallbackServerContext* call,
                                            const inference::ModelStatisticsRequest* request,
                                            inference::ModelStatisticsResponse* response) override;
  grpc::ServerUnaryReactor* RepositoryIndex(grpc::CallbackServerContext* call,
                                            const inference::RepositoryIndexRequest* request,
                                            inference::RepositoryIndexResponse* response) override;
  grpc::ServerUnaryReactor* SystemSharedMemoryStatus(
      grpc::CallbackServerContext* call, const inference::SystemSharedMemoryStatusRequest* request,
      inference::SystemSharedMemoryStatusResponse* response) override;
  grpc::ServerUnaryReactor* SystemSharedMemoryRegister(
      grpc::CallbackServerContext* call,
      const inference::SystemSharedMemoryRegisterRequest* request,
      inference::SystemSharedMemoryRegisterResponse* response) override;
  grpc::ServerUnaryReactor* SystemSharedMemoryUnregister(
      grpc::CallbackServerContext* call,
      const inference::SystemSharedMemoryUnregisterRequest* request,
      inference::SystemSharedMemoryUnregisterResponse* response) override;
  grpc::ServerUnaryReactor* CudaSharedMemoryStatus(
      grpc::CallbackServerContext* call, const inference::CudaSharedMemoryStatusRequest* request,
      inference::CudaSharedMemoryStatusResponse* response) override;
  grpc::ServerUnaryReactor* CudaSharedMemoryRegister(
      grpc::CallbackServerContext* call, const inference::CudaSharedMemoryRegisterRequest* request,
      inference::CudaSharedMemoryRegisterResponse* response) override;
  grpc::ServerUnaryReactor* CudaSharedMemoryUnregister(
      grpc::CallbackServerContext* call,
      const inference::CudaSharedMemoryUnregisterRequest* request,
      inference::CudaSharedMemoryUnregisterResponse* response) override;

  // Of shared memory that clients have registered.
  size_t regions() const { return memory_.count(); }

 private:
  // As of GemmService.
  ServiceContext& context() const {
    made_.load();
    return context_;
  }

  ServiceContext& context_;
  const std::function<bool()> ready_;
  ModelCounters counters_;
  SharedMemory memory_;
  static inline std::atomic<int> made_{0};
};

}  // namespace gemmd
