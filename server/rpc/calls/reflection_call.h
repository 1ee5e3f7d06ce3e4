// One ServerReflectionInfo call of gRPC's server reflection.
//
// gRPC's own service holds a thread for each stream that is open, and counts for no caller. Here
// a stream is a call like those of the contract. It is read on when its answer has been taken.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/rpc/context/service_context.h"
#include "server/rpc/life/reactors.h"

namespace gemmd {

// Reflection answers with the descriptors that are linked into the program, and with these
// services.
grpc::reflection::v1::ServerReflectionResponse Reflect(
    const grpc::reflection::v1::ServerReflectionRequest& request,
    const std::vector<std::string>& services);

class ReflectionCall final : public BidiStreamingCall {
 public:
  // `path` as on the wire, which lives as long as the process; `services` as long as the server.
  // The reactor lives until the call has ended.
  static ReflectionCall* Begin(ServiceContext& service, grpc::CallbackServerContext* call,
                               absl::string_view path, const std::vector<std::string>& services);

  ReflectionCall(ServiceContext& service, grpc::CallbackServerContext* call, absl::string_view path,
                 const std::vector<std::string>& services)
      : BidiStreamingCall(service, call, path), services_(services) {}

  void BeginDrain() override;

 private:
  bool WantsRead() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnMessage(grpc::ByteBuffer& message) override;
  void OnInputEnd() override;
  void OnCancelled() override;
  void GrowOld() override;

  // Handles no more messages; `why` is the call's status.
  void End(const absl::Status& why);

  const std::vector<std::string>& services_;
};

}  // namespace gemmd
