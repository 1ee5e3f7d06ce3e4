// Converts requests to the engine's types, with the caller as owner. All errors name the
// field by its path in the request. They are INVALID_ARGUMENT, or PERMISSION_DENIED where a
// product keeps or releases a matrix and the caller lacks the role matrices. What the
// engine checks, such as whether the operands fit together, is not checked here.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gemm/v1/gemm.pb.h"
#include "server/engine/engine.h"
#include "server/engine/job/job.h"
#include "server/identity/roles.h"

namespace gemmd {

// Whether operands may be sent in chunks.
enum class PayloadRule { kAllowed, kRefused };

struct ProductRequest {
  JobSpec spec;
  // The operands whose elements were in the request itself. To the engine they are
  // payload.
  std::vector<std::pair<Role, absl::Cord>> inline_data;
};

// The job's deadline is `call_deadline`, or `arrived` plus its own timeout if that is
// earlier. Moves the elements of `data` operands out of `product`.
absl::StatusOr<ProductRequest> ParseProduct(gemm::v1::Product& product, const Caller& caller,
                                            PayloadRule payload, absl::Time arrived,
                                            absl::Time call_deadline);

absl::StatusOr<UploadSpec> ParseUpload(const gemm::v1::PutMatrixHeader& header,
                                       const Caller& caller, absl::Time call_deadline);

absl::StatusOr<DownloadSpec> ParseDownload(const gemm::v1::GetMatrixRequest& request,
                                           const Caller& caller, absl::Time call_deadline);

// Parses a duration of at least `shortest`.
absl::StatusOr<absl::Duration> ParseDuration(const google::protobuf::Duration& duration,
                                             absl::Duration shortest, absl::string_view field);

// The parameters of the distribution must be finite in `type`. If the type is not known
// yet, f32 is used, because the elements of every type are first rounded to f32.
absl::StatusOr<gemm::GeneratorSpec> ParseGenerator(const gemm::v1::Generator& generator,
                                                   std::optional<gemm::DType> type,
                                                   absl::string_view field);

absl::StatusOr<MatrixKey> ParseKey(const gemm::v1::MatrixRef& ref, const Caller& caller,
                                   absl::string_view field);

}  // namespace gemmd
