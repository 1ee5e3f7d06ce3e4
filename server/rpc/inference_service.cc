#include "server/rpc/inference_service.h"

#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gemm/quote.h"
#include "server/rpc/inference/model_infer_call.h"
#include "server/rpc/inference/model_stream_infer_call.h"
#include "server/rpc/inference/models.h"
#include "server/rpc/life/query_call.h"

namespace gemmd {
namespace {

namespace pb = inference;
using Reactor = grpc::ServerUnaryReactor;
using CallContext = grpc::CallbackServerContext;

// Answers a call with what `query` says, which takes the caller.
template <typename Request, typename Query>
Reactor* AnswerQuery(ServiceContext& context, CallContext* call, const Request* /*request*/,
                     Query query) {
  return QueryCall::Begin(context, call, MethodOf<Request>(), std::move(query));
}

// The same, where there is nothing to say.
template <typename Request>
Reactor* AnswerEmpty(ServiceContext& context, CallContext* call, const Request* request) {
  return AnswerQuery(context, call, request, [](const Caller&) { return absl::OkStatus(); });
}

absl::Status NoRegion(const std::string& name) {
  return absl::NotFoundError(
      absl::StrCat("name: no region ", gemm::Quoted(name), " is registered"));
}

// The same to a question for a region: there is none.
template <typename Request>
Reactor* AnswerNoRegion(ServiceContext& context, CallContext* call, const Request* request) {
  return AnswerQuery(context, call, request, [request](const Caller&) {
    return request->name().empty() ? absl::OkStatus() : NoRegion(request->name());
  });
}

template <typename Request>
Reactor* RefuseGpuMemory(ServiceContext& context, CallContext* call, const Request* request) {
  return AnswerQuery(context, call, request, [](const Caller&) {
    return absl::UnimplementedError("this server takes and gives no tensors in memory of a GPU");
  });
}

// The model that a request names by `name` and `version`, described. NOT_FOUND.
template <typename Request>
absl::StatusOr<std::pair<Model, ModelDescription>> Described(ServiceContext& context,
                                                             const Caller& caller,
                                                             const Request& request) {
  absl::StatusOr<Model> model = FindModel(request.name(), request.version(), caller);
  if (!model.ok()) return model.status();
  absl::StatusOr<ModelDescription> description = DescribeModel(context, *model);
  if (!description.ok()) return description.status();
  return std::pair(*std::move(model), *std::move(description));
}

absl::Status FillStatistics(ServiceContext& context, const ModelCounters& counters,
                            const Caller& caller, const pb::ModelStatisticsRequest& request,
                            pb::ModelStatisticsResponse& out) {
  const auto described = Described(context, caller, request);
  if (!described.ok()) return described.status();
  pb::ModelStatistics& model = *out.add_model_stats();
  model = counters.Of(caller.name, described->first.name);
  model.set_version(described->second.version);
  return absl::OkStatus();
}

absl::Status FillAllStatistics(ServiceContext& context, const ModelCounters& counters,
                               const Caller& caller, pb::ModelStatisticsResponse& out) {
  std::set<std::string> names = {std::string(kMatmulName), std::string(kBatchedName)};
  for (std::string& name : counters.ModelsOf(caller.name)) names.insert(std::move(name));
  for (const std::string& name : names) {
    pb::ModelStatisticsRequest one;
    one.set_name(name);
    // A matrix may be gone since.
    const absl::Status status = FillStatistics(context, counters, caller, one, out);
    if (!status.ok() && !absl::IsNotFound(status) && !absl::IsDataLoss(status)) return status;
  }
  return CheckMessageBytes("model_stats", out.ByteSizeLong(), context.limits);
}

}  // namespace

grpc::ServerUnaryReactor* InferenceService::ServerLive(CallContext* call,
                                                       const pb::ServerLiveRequest* request,
                                                       pb::ServerLiveResponse* response) {
  return AnswerQuery(context(), call, request, [response](const Caller&) {
    response->set_live(true);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* InferenceService::ServerReady(CallContext* call,
                                                        const pb::ServerReadyRequest* request,
                                                        pb::ServerReadyResponse* response) {
  return AnswerQuery(context(), call, request, [this, response](const Caller&) {
    response->set_ready(ready_());
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* InferenceService::ModelReady(CallContext* call,
                                                       const pb::ModelReadyRequest* request,
                                                       pb::ModelReadyResponse* response) {
  return AnswerQuery(context(), call, request, [=, this](const Caller& caller) {
    const auto described = Described(context(), caller, *request);
    response->set_ready(described.ok());
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* InferenceService::ServerMetadata(CallContext* call,
                                                           const pb::ServerMetadataRequest* request,
                                                           pb::ServerMetadataResponse* response) {
  return AnswerQuery(context(), call, request, [this, response](const Caller&) {
    response->set_name("gemmd");
    response->set_version(context().version);
    response->add_extensions("model_configuration");
    response->add_extensions("model_repository");
    response->add_extensions("parameters");
    response->add_extensions("statistics");
    if (memory_.enabled()) response->add_extensions("system_shared_memory");
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* InferenceService::ModelMetadata(CallContext* call,
                                                          const pb::ModelMetadataRequest* request,
                                                          pb::ModelMetadataResponse* response) {
  return AnswerQuery(context(), call, request, [=, this](const Caller& caller) {
    const auto described = Described(context(), caller, *request);
    if (described.ok()) Fill(described->first, described->second, *response);
    return described.status();
  });
}

grpc::ServerUnaryReactor* InferenceService::ModelConfig(CallContext* call,
                                                        const pb::ModelConfigRequest* request,
                                                        pb::ModelConfigResponse* response) {
  return AnswerQuery(context(), call, request, [=, this](const Caller& caller) {
    const auto described = Described(context(), caller, *request);
    if (described.ok()) Fill(described->first, described->second, *response->mutable_config());
    return described.status();
  });
}

grpc::ServerUnaryReactor* InferenceService::ModelStatistics(
    CallContext* call, const pb::ModelStatisticsRequest* request,
    pb::ModelStatisticsResponse* response) {
  return AnswerQuery(context(), call, request, [=, this](const Caller& caller) {
    return request->name().empty()
               ? FillAllStatistics(context(), counters_, caller, *response)
               : FillStatistics(context(), counters_, caller, *request, *response);
  });
}

grpc::ServerUnaryReactor* InferenceService::RepositoryIndex(
    CallContext* call, const pb::RepositoryIndexRequest* request,
    pb::RepositoryIndexResponse* response) {
  return AnswerQuery(context(), call, request, [this, response](const Caller& caller) {
    return ListModels(context(), caller, *response);
  });
}

grpc::ServerUnaryReactor* InferenceService::ModelInfer(CallContext* call,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  return ModelInferCall::Begin(context(), counters_, memory_, call, request, response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* InferenceService::ModelStreamInfer(
    CallContext* call) {
  return ModelStreamInferCall::Begin(context(), counters_, memory_, call);
}

grpc::ServerUnaryReactor* InferenceService::SystemSharedMemoryStatus(
    CallContext* call, const pb::SystemSharedMemoryStatusRequest* request,
    pb::SystemSharedMemoryStatusResponse* response) {
  return AnswerQuery(context(), call, request, [=, this](const Caller& caller) -> absl::Status {
    const absl::StatusOr<std::string> owner = memory_.OwnerOf(caller.name, call->peer());
    const auto regions = owner.ok() ? memory_.List(*owner) : decltype(memory_.List(""))();
    for (const auto& [name, region] : regions) {
      if (!request->name().empty() && request->name() != name) continue;
      auto& status = (*response->mutable_regions())[name];
      status.set_name(name);
      status.set_key(region.key);
      status.set_offset(region.offset);
      status.set_byte_size(region.bytes);
    }
    if (request->name().empty() || response->regions_size() > 0) {
      return CheckMessageBytes("regions", response->ByteSizeLong(), context().limits);
    }
    return NoRegion(request->name());
  });
}

grpc::ServerUnaryReactor* InferenceService::SystemSharedMemoryRegister(
    CallContext* call, const pb::SystemSharedMemoryRegisterRequest* request,
    pb::SystemSharedMemoryRegisterResponse* /*response*/) {
  return AnswerQuery(context(), call, request, [=, this](const Caller& caller) -> absl::Status {
    const absl::StatusOr<std::string> owner = memory_.OwnerOf(caller.name, call->peer());
    if (!owner.ok()) return owner.status();
    return memory_.Register(
        *owner, request->name(),
        {.key = request->key(), .offset = request->offset(), .bytes = request->byte_size()});
  });
}

grpc::ServerUnaryReactor* InferenceService::SystemSharedMemoryUnregister(
    CallContext* call, const pb::SystemSharedMemoryUnregisterRequest* request,
    pb::SystemSharedMemoryUnregisterResponse* /*response*/) {
  return AnswerQuery(context(), call, request, [=, this](const Caller& caller) {
    const absl::StatusOr<std::string> owner = memory_.OwnerOf(caller.name, call->peer());
    if (!owner.ok()) return absl::OkStatus();  // it has no regions
    if (request->name().empty()) {
      memory_.UnregisterAll(*owner);
    } else {
      memory_.Unregister(*owner, request->name());
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* InferenceService::CudaSharedMemoryStatus(
    CallContext* call, const pb::CudaSharedMemoryStatusRequest* request,
    pb::CudaSharedMemoryStatusResponse* /*response*/) {
  return AnswerNoRegion(context(), call, request);
}

grpc::ServerUnaryReactor* InferenceService::CudaSharedMemoryRegister(
    CallContext* call, const pb::CudaSharedMemoryRegisterRequest* request,
    pb::CudaSharedMemoryRegisterResponse* /*response*/) {
  return RefuseGpuMemory(context(), call, request);
}

grpc::ServerUnaryReactor* InferenceService::CudaSharedMemoryUnregister(
    CallContext* call, const pb::CudaSharedMemoryUnregisterRequest* request,
    pb::CudaSharedMemoryUnregisterResponse* /*response*/) {
  return AnswerEmpty(context(), call, request);
}

}  // namespace gemmd
