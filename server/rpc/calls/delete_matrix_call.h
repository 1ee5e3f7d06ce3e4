// The answer to DeleteMatrix.
#pragma once

#include "absl/status/status.h"
#include "gemm/v1/gemm.pb.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

absl::Status DeleteMatrix(ServiceContext& context, const Caller& caller,
                          const gemm::v1::DeleteMatrixRequest& request,
                          gemm::v1::DeleteMatrixResponse& response);

}  // namespace gemmd
