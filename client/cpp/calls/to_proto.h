// The library's types as messages of the contract; a shape has its own in gemmd/client/matrix.h.
#pragma once

#include "absl/time/time.h"
#include "gemm/v1/gemm.pb.h"
#include "gemmd/client/product.h"
#include "google/protobuf/duration.pb.h"

namespace gemmd::client {

::gemm::v1::Generator ToProto(const Generated& generated);
::gemm::v1::Keep ToProto(const Keep& keep);
::gemm::v1::MatrixRef ToProto(const Resident& resident);
google::protobuf::Duration ToProto(absl::Duration duration);

}  // namespace gemmd::client
