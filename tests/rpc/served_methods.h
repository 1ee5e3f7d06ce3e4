// The methods of a running server, by its own reflection.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"

namespace gemmd {

// "/package.Service/Method" of every service that gRPC's server reflection lists. `token`: of a
// caller that may ask for it.
std::vector<std::string> ServedMethods(const std::shared_ptr<grpc::Channel>& channel,
                                       const std::string& token);

}  // namespace gemmd
