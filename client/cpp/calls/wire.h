// Messages with payload, as gRPC byte buffers. The payload of a message to send
// stays in the caller's memory. The payload of a received message is copied once,
// from the transport's slices to its place.
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

// The id of a job that is the only one of its stream.
inline constexpr uint64_t kJobId = 1;

// An upper bound on the size of a message's fields without its payload and strings.
inline constexpr uint64_t kMessageOverheadBytes = 4096;

// A slice over [data, data + bytes). It holds `owner` until the transport releases
// it.
grpc::Slice WrapMemory(const std::byte* data, size_t bytes, std::shared_ptr<const void> owner);

// Serializes a message without payload. It must be initialised and below 2 GiB.
grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message);

// A MultiplyRequest with a chunk of a job's operand, and a PutMatrixRequest with a chunk.
grpc::ByteBuffer OperandChunkMessage(uint64_t job_id, ::gemm::v1::OperandRole role, uint64_t offset,
                                     const grpc::Slice& payload);
grpc::ByteBuffer MatrixChunkMessage(uint64_t offset, const grpc::Slice& payload);

// The position of the payload in a received message.
struct Piece {
  uint64_t job_id = 0;
  uint64_t offset = 0;    // of its first byte in the matrix
  uint64_t bytes = 0;     // 0: none
  uint64_t position = 0;  // of its first byte in the message
};

// Parses a message. Returns the piece of a result chunk; for any other message
// returns nullopt and sets `*other`. INTERNAL where it does not parse.
absl::StatusOr<std::optional<Piece>> ParseMultiplyResponse(const grpc::ByteBuffer& message,
                                                           ::gemm::v1::MultiplyResponse* other);

// Returns the piece, and in `*fields` everything but the payload.
absl::StatusOr<Piece> ParseGetMatrixResponse(const grpc::ByteBuffer& message,
                                             ::gemm::v1::GetMatrixResponse* fields);

// Parses a message without payload.
absl::Status Parse(const grpc::ByteBuffer& message, google::protobuf::MessageLite* parsed);

// Copies the piece's payload from its message to `to`.
absl::Status CopyPiece(const grpc::ByteBuffer& message, const Piece& piece, std::byte* to);

}  // namespace gemmd::client
