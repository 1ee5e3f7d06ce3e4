// Calls by method name and bytes: for services without stubs here, and for
// messages that no stub would send.
#pragma once

#include <memory>
#include <string>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"

namespace gemmd {

// One call of any shape, blocking.
class RawCall {
 public:
  // `method` as on the wire: "/gemm.v1.GemmService/Multiply". Without a token, no
  // metadata "authorization" is sent.
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
          const std::string& token = "");
  ~RawCall();

  bool Write(const std::string& bytes);
  bool WritesDone();
  // False at the end of the stream.
  bool Read(std::string& bytes);
  // Reads the rest.
  grpc::Status Finish();
  grpc::ClientContext& context() { return context_; }

 private:
  bool Wait();

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

// A method of gemm.v1.GemmService, such as "Multiply", and an empty request of it.
const google::protobuf::MethodDescriptor& MethodNamed(const std::string& method);
std::unique_ptr<google::protobuf::Message> NewRequestOf(const std::string& method);

// One message there, one back.
grpc::Status CallUnary(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                       const std::string& request, std::string& response);

// grpc.health.v1.HealthCheckResponse.ServingStatus.
enum class Serving { kUnknown = 0, kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

// The request of grpc.health.v1.Health.
std::string HealthRequest(const std::string& service);
Serving ParseHealth(const std::string& response);

}  // namespace gemmd
