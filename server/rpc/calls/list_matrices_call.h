// The answer to ListMatrices.
#pragma once

#include "absl/status/status.h"
#include "gemm/v1/gemm.pb.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

absl::Status ListMatrices(ServiceContext& context, const Caller& caller,
                          const gemm::v1::ListMatricesRequest& request,
                          gemm::v1::ListMatricesResponse& response);

}  // namespace gemmd
