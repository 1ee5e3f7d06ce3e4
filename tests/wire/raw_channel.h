// Calls with messages made by hand from slices that wrap the caller's memory:
// the least a client can do, and the same for every server measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gemm/v1/gemm.pb.h"
#include "grpcpp/grpcpp.h"

namespace gemmd::wire {

// `count` channels to one address, each with a connection of its own, all
// connected. UNAVAILABLE where that takes more than ten seconds.
absl::StatusOr<std::vector<std::shared_ptr<grpc::Channel>>> Connect(
    const std::string& address, int count,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials =
        grpc::InsecureChannelCredentials());

// Sends `data` with PutMatrix as a matrix of f32 with rows of `row_bytes`: in
// one call on one channel, split by an upload id over several. Returns the
// answer of the call that completed it (of the first, where none says so).
struct UploadPlan {
  absl::Span<const std::byte> data;
  uint64_t row_bytes = 0;
  uint64_t chunk_bytes = 0;
};
absl::StatusOr<gemm::v1::PutMatrixResponse> Upload(
    const std::vector<std::shared_ptr<grpc::Channel>>& channels, const UploadPlan& plan);

// A unary call of any method. The request's parts are sent from where they lie.
absl::StatusOr<grpc::ByteBuffer> CallUnary(const std::shared_ptr<grpc::Channel>& channel,
                                           const std::string& method,
                                           const std::vector<absl::Span<const std::byte>>& parts);

absl::Status DeleteMatrix(const std::shared_ptr<grpc::Channel>& channel,
                          const std::string& matrix_id);

// A message as one slice, and one out of any.
grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message);
bool Parse(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* message);

// GetMatrixResponse{offset, data}, with the data where it lies.
grpc::ByteBuffer DataMessage(uint64_t offset, absl::Span<const std::byte> data);

absl::Status FromGrpc(const grpc::Status& status);

}  // namespace gemmd::wire
