// The names of the services' methods, as their protocols have them. Metrics and log show them.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace gemmd {

// All methods of gemm.v1.GemmService, in the contract's order: "Multiply".
std::vector<std::string> MethodNames();
// Those of inference.GRPCInferenceService: "ModelInfer". None has the name of one above.
std::vector<std::string> InferenceMethodNames();

// The first method that takes this message. Ends the process where no method does.
const std::string& MethodThatTakes(const google::protobuf::Descriptor& request);

// The method that takes `Request`, which no other method of the contract does (buf lint holds
// that). Of ModelInferRequest it is ModelInfer. The name lives as long as the process.
template <typename Request>
absl::string_view MethodOf() {
  static const std::string& name = MethodThatTakes(*Request::descriptor());
  return name;
}

// A generated service with the given of its methods served by callbacks: gRPC generates a template
// for each that derives from the rest. One that is not named would have gRPC make threads.
template <typename Service, template <typename> typename... Methods>
struct ServedBy {
  using Type = Service;
};
template <typename Service, template <typename> typename Method,
          template <typename> typename... Methods>
struct ServedBy<Service, Method, Methods...> {
  using Type = Method<typename ServedBy<Service, Methods...>::Type>;
};

}  // namespace gemmd
