// A ModelInferRequest as a product of the engine, and its answer.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "inference/inference.pb.h"
#include "server/engine/core/report.h"
#include "server/identity/roles.h"
#include "server/rpc/codec/requests.h"
#include "server/rpc/inference/models.h"

namespace gemmd {

// The longest id of a request: the answer repeats it.
inline constexpr size_t kMaxIdBytes = 1024;
// The field of the request that asks for the result.
inline constexpr absl::string_view kOutputsField = "outputs";

// A tensor, a parameter, a name and every other text is an entry. An empty one has two bytes on the
// wire and up to two hundred when parsed, so they are counted before that.
inline constexpr int kMostEntries = 1024;

// Parses a message that is no longer than a message may be. INVALID_ARGUMENT for bytes that are no
// ModelInferRequest, and for one of more than kMostEntries.
absl::Status DecodeInfer(const grpc::ByteBuffer& bytes, inference::ModelInferRequest& request);

struct InferProduct {
  ProductRequest product;
  absl::string_view output;  // the name of the result
  bool batched = false;      // the result has a dimension of the batch
  std::string version;       // of the model; empty: not known
};

// The product of a request to `model`. Moves the elements out of the request. Errors name fields
// of the request: INVALID_ARGUMENT, and UNIMPLEMENTED for tensors in shared memory.
absl::StatusOr<InferProduct> ParseInfer(inference::ModelInferRequest& request, const Model& model,
                                        const Caller& caller, absl::Time arrived,
                                        absl::Time call_deadline);

// All but the elements.
void FillAnswer(const Model& model, const InferProduct& product, const JobReport& report,
                inference::ModelInferResponse& out);

}  // namespace gemmd
