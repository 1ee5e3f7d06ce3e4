#include "server/rpc/context/method.h"

#include <cstdio>
#include <cstdlib>

#include "gemm/v1/gemm.pb.h"

namespace gemmd {
namespace {

const google::protobuf::ServiceDescriptor& Service() {
  return *gemm::v1::MultiplyRequest::descriptor()->file()->FindServiceByName("GemmService");
}

}  // namespace

std::vector<std::string> MethodNames() {
  std::vector<std::string> names;
  for (int i = 0; i < Service().method_count(); ++i) names.push_back(Service().method(i)->name());
  return names;
}

const std::string& MethodThatTakes(const google::protobuf::Descriptor& request) {
  for (int i = 0; i < Service().method_count(); ++i) {
    if (Service().method(i)->input_type() == &request) return Service().method(i)->name();
  }
  std::fprintf(stderr, "no method takes %s\n", request.full_name().c_str());
  std::abort();
}

}  // namespace gemmd
