// Converts messages with payload between the wire format and the engine's types,
// without a copy of the payload in either direction.
#pragma once

#include <cstdint>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "gemm/v1/gemm.pb.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/engine/job/job.h"

namespace gemmd {

// An OperandChunk. `data` refers to the received slices.
struct OperandBytes {
  uint64_t job_id = 0;
  int operand = 0;  // a v1::OperandRole, not checked
  uint64_t offset = 0;
  absl::Cord data;
};

// A MatrixChunk. `data` refers to the received slices.
struct MatrixBytes {
  uint64_t offset = 0;
  absl::Cord data;
};

using MultiplyMessage = std::variant<gemm::v1::MultiplyHeader, OperandBytes, gemm::v1::CancelJob>;
using PutMatrixMessage = std::variant<gemm::v1::PutMatrixHeader, MatrixBytes>;

// Accept what protobuf accepts, with the same values. INVALID_ARGUMENT for bytes that
// do not parse, and for a message with no member set.
absl::StatusOr<MultiplyMessage> DecodeMultiply(const grpc::ByteBuffer& message);
absl::StatusOr<PutMatrixMessage> DecodePutMatrix(const grpc::ByteBuffer& message);

// False where the bytes do not parse as `message`.
bool Parse(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message);
grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message);

// A MultiplyResponse with a ResultChunk, or a GetMatrixResponse with data. A long piece
// is referenced, and released when the transport has sent it. A short piece is copied
// and released at once.
grpc::ByteBuffer EncodeResultChunk(uint64_t job_id, ResultPiece piece);
grpc::ByteBuffer EncodeMatrixData(ResultPiece piece);

}  // namespace gemmd
