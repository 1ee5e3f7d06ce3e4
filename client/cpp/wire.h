// Messages with payload, as gRPC's byte buffers: the payload of a message to
// send stays where the caller has it, and that of a received one is copied
// straight out of the transport's slices to its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemm/v1/gemm.pb.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace gemmd::client {

// The one job of a product's stream.
inline constexpr uint64_t kJobId = 1;

// More than the fields of a message take beside its payload and its strings.
inline constexpr uint64_t kMessageOverheadBytes = 4096;

// A slice over [data, data + bytes) that holds `owner` until the transport has
// let go of it.
grpc::Slice WrapMemory(const std::byte* data, size_t bytes, std::shared_ptr<const void> owner);

// A message without payload. It must be initialised and below 2 GiB.
grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message);

// A MultiplyRequest with a chunk of kJobId's operand, and a PutMatrixRequest
// with a chunk.
grpc::ByteBuffer OperandChunkMessage(::gemm::v1::OperandRole role, uint64_t offset,
                                     const grpc::Slice& payload);
grpc::ByteBuffer MatrixChunkMessage(uint64_t offset, const grpc::Slice& payload);

// Where a received message's payload lies.
struct Piece {
  uint64_t job_id = 0;
  uint64_t offset = 0;    // of its first byte in the matrix
  uint64_t bytes = 0;     // 0: none
  uint64_t position = 0;  // of its first byte in the message
};

// Takes a message apart: the piece where it is a result chunk; otherwise
// nothing, and `*other` is the message. INTERNAL where it cannot be read.
absl::StatusOr<std::optional<Piece>> ParseMultiplyResponse(const grpc::ByteBuffer& message,
                                                           ::gemm::v1::MultiplyResponse* other);

// The piece, and all but the payload in `*fields`.
absl::StatusOr<Piece> ParseGetMatrixResponse(const grpc::ByteBuffer& message,
                                             ::gemm::v1::GetMatrixResponse* fields);

// Parses a message without payload.
absl::Status Parse(const grpc::ByteBuffer& message, google::protobuf::MessageLite* parsed);

// Copies the piece's payload out of its message to `to`.
absl::Status CopyPiece(const grpc::ByteBuffer& message, const Piece& piece, std::byte* to);

}  // namespace gemmd::client
