// What a request asks for, as the engine takes it. All errors are
// INVALID_ARGUMENT and name the field by its path in the request. What the
// engine checks, such as how the operands fit together, is left to it.
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

namespace gemmd {

// Whether operands may be sent in chunks.
enum class PayloadRule { kAllowed, kRefused };

struct ProductRequest {
  JobSpec spec;
  // The operands whose elements came in the request itself; for the engine they
  // are payload.
  std::vector<std::pair<Role, absl::Cord>> inline_data;
};

// `arrived` and `call_deadline` bound the job together with its own timeout.
// Takes the elements of `data` operands out of `product`.
absl::StatusOr<ProductRequest> ParseProduct(gemm::v1::Product& product, PayloadRule payload,
                                            absl::Time arrived, absl::Time call_deadline);

absl::StatusOr<UploadSpec> ParseUpload(const gemm::v1::PutMatrixHeader& header,
                                       absl::Time call_deadline);

absl::StatusOr<DownloadSpec> ParseDownload(const gemm::v1::GetMatrixRequest& request,
                                           absl::Time call_deadline);

// At least `shortest`.
absl::StatusOr<absl::Duration> ParseDuration(const google::protobuf::Duration& duration,
                                             absl::Duration shortest, absl::string_view field);

// For elements of `type`, which must have room for the distribution's numbers. Where
// the type is not known yet it is f32, through which the elements of every type go.
absl::StatusOr<gemm::GeneratorSpec> ParseGenerator(const gemm::v1::Generator& generator,
                                                   std::optional<gemm::DType> type,
                                                   absl::string_view field);

absl::StatusOr<MatrixKey> ParseKey(const gemm::v1::MatrixRef& ref, absl::string_view field);

}  // namespace gemmd
