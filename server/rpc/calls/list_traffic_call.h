// The answer to ListTraffic.
#pragma once

#include "absl/status/status.h"
#include "gemm/v1/gemm.pb.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

absl::Status ListTraffic(ServiceContext& context, const Caller& caller,
                         const gemm::v1::ListTrafficRequest& request,
                         gemm::v1::ListTrafficResponse& response);

}  // namespace gemmd
