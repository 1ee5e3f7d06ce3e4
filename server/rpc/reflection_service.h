// gRPC's server reflection, by both of its names.
#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "server/rpc/calls/reflection_call.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

// The service of one version. The messages of both versions are the same bytes. `context` must
// outlive the server that this is registered with.
template <typename Version, typename Request>
class ReflectionOf final : public Version::template WithRawCallbackMethod_ServerReflectionInfo<
                               typename Version::Service> {
 public:
  static constexpr const char* Name() { return Version::service_full_name(); }

  // `services`: the names of those that the server has.
  ReflectionOf(ServiceContext& context, std::vector<std::string> services)
      : context_(context), services_(std::move(services)) {
    Request::descriptor();  // has the linker take its file, so that reflection knows itself
    made_.fetch_add(1);
  }

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ServerReflectionInfo(
      grpc::CallbackServerContext* call) override {
    made_.load();  // as GemmService does
    static const std::string path = std::string("/") + Name() + "/ServerReflectionInfo";
    return ReflectionCall::Begin(context_, call, path, services_);
  }

 private:
  ServiceContext& context_;
  const std::vector<std::string> services_;
  static inline std::atomic<int> made_{0};
};

using Reflection = ReflectionOf<grpc::reflection::v1::ServerReflection,
                                grpc::reflection::v1::ServerReflectionRequest>;
using ReflectionAlpha = ReflectionOf<grpc::reflection::v1alpha::ServerReflection,
                                     grpc::reflection::v1alpha::ServerReflectionRequest>;

}  // namespace gemmd
