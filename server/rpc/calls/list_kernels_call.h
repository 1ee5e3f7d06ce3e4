// The answer to ListKernels.
#pragma once

#include "absl/status/status.h"
#include "gemm/v1/gemm.pb.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

absl::Status ListKernels(ServiceContext& context, const Caller& caller,
                         const gemm::v1::ListKernelsRequest& request,
                         gemm::v1::ListKernelsResponse& response);

}  // namespace gemmd
