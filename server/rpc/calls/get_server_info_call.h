// The answer to GetServerInfo.
#pragma once

#include "absl/status/status.h"
#include "gemm/v1/gemm.pb.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

absl::Status GetServerInfo(ServiceContext& context, const Caller& caller,
                           const gemm::v1::GetServerInfoRequest& request,
                           gemm::v1::GetServerInfoResponse& response);

}  // namespace gemmd
