// The unary calls without payload, which never wait.
#pragma once

#include "absl/status/status.h"
#include "gemm/v1/gemm.pb.h"
#include "server/rpc/service_context.h"

namespace gemmd {

absl::Status ListMatrices(ServiceContext& context, const gemm::v1::ListMatricesRequest& request,
                          gemm::v1::ListMatricesResponse& response);
absl::Status DeleteMatrix(ServiceContext& context, const gemm::v1::DeleteMatrixRequest& request,
                          gemm::v1::DeleteMatrixResponse& response);
absl::Status ListKernels(ServiceContext& context, const gemm::v1::ListKernelsRequest& request,
                         gemm::v1::ListKernelsResponse& response);
absl::Status GetServerInfo(ServiceContext& context, const gemm::v1::GetServerInfoRequest& request,
                           gemm::v1::GetServerInfoResponse& response);

}  // namespace gemmd
