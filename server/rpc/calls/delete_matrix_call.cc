#include "server/rpc/calls/queries.h"
#include "server/rpc/codec/replies.h"
#include "server/rpc/codec/requests.h"

namespace gemmd {

namespace v1 = gemm::v1;

absl::Status DeleteMatrix(ServiceContext& context, const Caller& caller,
                          const v1::DeleteMatrixRequest& request,
                          v1::DeleteMatrixResponse& response) {
  absl::StatusOr<MatrixKey> key = ParseKey(request.matrix(), caller, "matrix");
  if (!key.ok()) return key.status();
  key->any_owner = caller.roles.Has(CallerRole::kAdmin);
  const absl::StatusOr<MatrixRecord> matrix = context.engine.DeleteMatrix(*key);
  if (!matrix.ok()) return matrix.status();
  Fill(*matrix, *response.mutable_matrix());
  return absl::OkStatus();
}

}  // namespace gemmd
