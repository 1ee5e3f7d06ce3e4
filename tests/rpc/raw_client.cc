#include "tests/rpc/raw_client.h"

#include <vector>

#include "gemm/v1/gemm.pb.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace gemmd {

RawCall::RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                 const std::string& token)
    : stub_(channel) {
  if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
  call_ = stub_.PrepareCall(&context_, method, &queue_);
  call_->StartCall(this);
  Wait();
}

RawCall::~RawCall() {
  context_.TryCancel();
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool RawCall::Wait() {
  void* tag;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

bool RawCall::Write(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  call_->Write(grpc::ByteBuffer(&slice, 1), this);
  return Wait();
}

bool RawCall::WritesDone() {
  call_->WritesDone(this);
  return Wait();
}

bool RawCall::Read(std::string& bytes) {
  grpc::ByteBuffer buffer;
  call_->Read(&buffer, this);
  if (!Wait()) return false;
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return false;
  bytes.clear();
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return true;
}

grpc::Status RawCall::Finish() {
  std::string ignored;
  while (Read(ignored)) {
  }
  grpc::Status status;
  call_->Finish(&status, this);
  Wait();
  return status;
}

const google::protobuf::MethodDescriptor& MethodNamed(const std::string& method) {
  return *gemm::v1::MultiplyRequest::descriptor()
              ->file()
              ->FindServiceByName("GemmService")
              ->FindMethodByName(method);
}

std::unique_ptr<google::protobuf::Message> NewRequestOf(const std::string& method) {
  return std::unique_ptr<google::protobuf::Message>(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(MethodNamed(method).input_type())
          ->New());
}

grpc::Status CallUnary(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                       const std::string& request, std::string& response) {
  RawCall call(channel, method);
  call.Write(request);
  call.WritesDone();
  call.Read(response);
  return call.Finish();
}

std::string HealthRequest(const std::string& service) {
  if (service.empty()) return "";
  return std::string("\x0a") + static_cast<char>(service.size()) + service;  // string service = 1
}

Serving ParseHealth(const std::string& response) {
  // ServingStatus status = 1
  if (response.size() != 2 || response[0] != 8) return Serving::kUnknown;
  return static_cast<Serving>(response[1]);
}

}  // namespace gemmd
