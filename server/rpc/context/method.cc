#include "server/rpc/context/method.h"

#include <cstdio>
#include <cstdlib>

#include "gemm/v1/gemm.pb.h"
#include "inference/inference.pb.h"

namespace gemmd {
namespace {

using google::protobuf::ServiceDescriptor;

const ServiceDescriptor& Gemm() {
  return *gemm::v1::MultiplyRequest::descriptor()->file()->FindServiceByName("GemmService");
}

const ServiceDescriptor& Inference() {
  return *inference::ModelInferRequest::descriptor()->file()->FindServiceByName(
      "GRPCInferenceService");
}

std::vector<std::string> NamesOf(const ServiceDescriptor& service) {
  std::vector<std::string> names;
  for (int i = 0; i < service.method_count(); ++i) names.push_back(service.method(i)->name());
  return names;
}

}  // namespace

std::vector<std::string> MethodNames() { return NamesOf(Gemm()); }
std::vector<std::string> InferenceMethodNames() { return NamesOf(Inference()); }

const std::string& MethodThatTakes(const google::protobuf::Descriptor& request) {
  for (const ServiceDescriptor* service : {&Gemm(), &Inference()}) {
    for (int i = 0; i < service->method_count(); ++i) {
      if (service->method(i)->input_type() == &request) return service->method(i)->name();
    }
  }
  std::fprintf(stderr, "no method takes %s\n", request.full_name().c_str());
  std::abort();
}

}  // namespace gemmd
