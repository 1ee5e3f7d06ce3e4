// Uploads, downloads and questions that must fail, each with its code and what
// its sentence must say.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "gemm/v1/gemm.grpc.pb.h"
#include "grpcpp/support/status.h"

namespace gemmd {

struct BadTransfer {
  std::string name;
  // Makes the whole call and gives its status.
  std::function<grpc::Status(gemm::v1::GemmService::Stub& stub)> call;
  grpc::StatusCode code;
  std::vector<std::string> sentence;
};
inline std::ostream& operator<<(std::ostream& out, const BadTransfer& bad) {
  return out << bad.name;
}

// For a BoundedServer with a matrix "resident", 8 x 8 f32.
const std::vector<BadTransfer>& BadTransfers();

}  // namespace gemmd
