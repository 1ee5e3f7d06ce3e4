#include "server/rpc/calls/delete_matrix_call.h"

#include "server/rpc/codec/replies.h"
#include "server/rpc/codec/requests.h"

namespace gemmd {

namespace v1 = gemm::v1;

absl::Status DeleteMatrix(ServiceContext& context, const v1::DeleteMatrixRequest& request,
                          v1::DeleteMatrixResponse& response) {
  const absl::StatusOr<MatrixKey> key = ParseKey(request.matrix(), "matrix");
  if (!key.ok()) return key.status();
  const absl::StatusOr<MatrixRecord> matrix = context.engine.DeleteMatrix(*key);
  if (!matrix.ok()) return matrix.status();
  Fill(*matrix, *response.mutable_matrix());
  return absl::OkStatus();
}

}  // namespace gemmd
