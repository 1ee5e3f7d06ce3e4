// The answers to the calls that never wait, one function each: of matrices, of kernels, and of the
// server.
#pragma once

#include "absl/status/status.h"
#include "gemm/v1/gemm.pb.h"
#include "server/rpc/context/service_context.h"

namespace gemmd {

// Fills the answer, or says why there is none.
template <typename Request, typename Response>
using QueryAnswer = absl::Status(ServiceContext& context, const Caller& caller,
                                 const Request& request, Response& response);

QueryAnswer<gemm::v1::DeleteMatrixRequest, gemm::v1::DeleteMatrixResponse> DeleteMatrix;
QueryAnswer<gemm::v1::GetServerInfoRequest, gemm::v1::GetServerInfoResponse> GetServerInfo;
QueryAnswer<gemm::v1::ListKernelsRequest, gemm::v1::ListKernelsResponse> ListKernels;
QueryAnswer<gemm::v1::ListMatricesRequest, gemm::v1::ListMatricesResponse> ListMatrices;
QueryAnswer<gemm::v1::ListTrafficRequest, gemm::v1::ListTrafficResponse> ListTraffic;
QueryAnswer<gemm::v1::RankKernelsRequest, gemm::v1::RankKernelsResponse> RankKernels;

}  // namespace gemmd
