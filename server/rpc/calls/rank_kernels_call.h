// The answer to RankKernels.
#pragma once

#include "absl/status/status.h"
#include "gemm/v1/gemm.pb.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

absl::Status RankKernels(ServiceContext& context, const Caller& caller,
                         const gemm::v1::RankKernelsRequest& request,
                         gemm::v1::RankKernelsResponse& response);

}  // namespace gemmd
