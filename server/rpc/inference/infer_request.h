// A ModelInferRequest as a product of the engine, and its answer.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "inference/inference.pb.h"
#include "server/engine/core/report.h"
#include "server/identity/roles.h"
#include "server/rpc/codec/requests.h"
#include "server/rpc/inference/models.h"
#include "server/rpc/inference/shared_memory.h"

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
  // Operands in shared memory, but for small ones, whose elements are read at once.
  std::vector<std::pair<Role, std::shared_ptr<RegionPart>>> regions;
  uint64_t small_region_bytes = 0;
  // Where the result goes; null: into the answer.
  std::shared_ptr<RegionResult> result;

  // Bytes of operands and result that no message has.
  uint64_t RegionBytes() const;
};

// Who asks, and how.
struct InferCaller {
  const Caller& caller;
  std::string peer;  // of the connection, as gRPC names it
  absl::Time arrived;
  absl::Time call_deadline;
};

// The product of a request to `model`. Moves the elements out of the request. Errors name fields
// of the request: INVALID_ARGUMENT, and those of SharedMemory.
absl::StatusOr<InferProduct> ParseInfer(inference::ModelInferRequest& request, const Model& model,
                                        SharedMemory& memory, const InferCaller& from);

// OK where the result fits the part of a region that is given for it.
absl::Status CheckRegionBytes(uint64_t result_bytes, const RegionResult& region);

// Sends the operands that are in regions, of a job that was started.
void SendRegions(SharedMemory& memory, const std::shared_ptr<Job>& job, InferProduct& product);

// All but the elements. `request`: of the product.
void FillAnswer(const inference::ModelInferRequest& request, const Model& model,
                const InferProduct& product, const JobReport& report,
                inference::ModelInferResponse& out);

}  // namespace gemmd
