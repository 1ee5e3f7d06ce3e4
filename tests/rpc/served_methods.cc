#include "tests/rpc/served_methods.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "tests/rpc/raw_client.h"

namespace gemmd {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;
using google::protobuf::ServiceDescriptor;

constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kListServices[] = "\x3a\x00";  // string list_services = 7

// The answer's bytes; gRPC has its message, but no header of it.
std::string AskForServices(const std::shared_ptr<grpc::Channel>& channel,
                           const std::string& token) {
  RawCall call(channel, kReflection, token);
  call.Write(std::string(kListServices, 2));
  std::string answer;
  EXPECT_TRUE(call.Read(answer));
  call.WritesDone();
  const grpc::Status status = call.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return answer;
}

std::vector<std::string> ServiceNames(const std::string& answer) {
  const Descriptor* const type = DescriptorPool::generated_pool()->FindMessageTypeByName(
      "grpc.reflection.v1alpha.ServerReflectionResponse");
  const std::unique_ptr<Message> message(
      MessageFactory::generated_factory()->GetPrototype(type)->New());
  EXPECT_TRUE(message->ParseFromString(answer));
  const Message& list = message->GetReflection()->GetMessage(
      *message, type->FindFieldByName("list_services_response"));
  const FieldDescriptor* const services = list.GetDescriptor()->FindFieldByName("service");
  std::vector<std::string> names;
  for (int i = 0; i < list.GetReflection()->FieldSize(list, services); ++i) {
    const Message& service = list.GetReflection()->GetRepeatedMessage(list, services, i);
    names.push_back(service.GetReflection()->GetString(
        service, service.GetDescriptor()->FindFieldByName("name")));
  }
  return names;
}

std::vector<std::string> MethodsOf(const std::string& service) {
  // gRPC's own, which has no descriptor.
  if (service == "grpc.health.v1.Health") return {"Check", "Watch"};
  const ServiceDescriptor* const descriptor =
      DescriptorPool::generated_pool()->FindServiceByName(service);
  if (descriptor == nullptr) {
    ADD_FAILURE() << service << " has no descriptor: name its methods here";
    return {};
  }
  std::vector<std::string> names;
  for (int i = 0; i < descriptor->method_count(); ++i) {
    names.push_back(descriptor->method(i)->name());
  }
  return names;
}

}  // namespace

std::vector<std::string> ServedMethods(const std::shared_ptr<grpc::Channel>& channel,
                                       const std::string& token) {
  std::vector<std::string> paths;
  for (const std::string& service : ServiceNames(AskForServices(channel, token))) {
    for (const std::string& method : MethodsOf(service)) {
      paths.push_back(absl::StrCat("/", service, "/", method));
    }
  }
  return paths;
}

}  // namespace gemmd
