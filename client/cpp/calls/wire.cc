#include "client/cpp/calls/wire.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"

namespace gemmd::client {
namespace {

using ::gemm::v1::GetMatrixResponse;
using ::gemm::v1::MatrixChunk;
using ::gemm::v1::MultiplyRequest;
using ::gemm::v1::MultiplyResponse;
using ::gemm::v1::OperandChunk;
using ::gemm::v1::PutMatrixRequest;
using ::gemm::v1::ResultChunk;
using ::google::protobuf::internal::WireFormatLite;
using ::google::protobuf::io::CodedInputStream;
using ::google::protobuf::io::CodedOutputStream;

constexpr uint32_t Tag(int field, WireFormatLite::WireType type) {
  return static_cast<uint32_t>(field) << 3 | static_cast<uint32_t>(type);
}
constexpr uint32_t VarintTag(int field) { return Tag(field, WireFormatLite::WIRETYPE_VARINT); }
constexpr uint32_t BytesTag(int field) {
  return Tag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

// A message's first fields, written by hand in the order of their numbers.
class Prefix {
 public:
  void Varint(uint64_t value) {
    uint8_t bytes[10];
    const uint8_t* end = CodedOutputStream::WriteVarint64ToArray(value, bytes);
    text_.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(end - bytes));
  }
  void Field(int field, uint64_t value) {
    if (value == 0) return;
    Varint(VarintTag(field));
    Varint(value);
  }
  // The tag and length of a field of `bytes` bytes that follow.
  void Open(int field, uint64_t bytes) {
    Varint(BytesTag(field));
    Varint(bytes);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// The message whose field `outer_field` is a chunk: `inner`, then the payload.
grpc::ByteBuffer ChunkMessage(int outer_field, const Prefix& inner, const grpc::Slice& payload) {
  Prefix outer;
  outer.Open(outer_field, inner.text().size() + payload.size());
  const grpc::Slice slices[] = {grpc::Slice(outer.text() + inner.text()), payload};
  return grpc::ByteBuffer(slices, 2);
}

absl::Status Unreadable() {
  return absl::InternalError("the server's message cannot be read: it is not of gemm.v1");
}

// A received message as a stream of bytes over its slices.
class Incoming {
 public:
  explicit Incoming(const grpc::ByteBuffer& message)
      // The reader takes a mutable buffer and does not change it.
      : reader_(const_cast<grpc::ByteBuffer*>(&message)), stream_(&reader_) {}

  CodedInputStream& stream() { return stream_; }

 private:
  grpc::ProtoBufferReader reader_;
  CodedInputStream stream_;
};

// Reads the fields of a chunk up to the stream's limit, noting where the
// payload lies. `job_id_field` 0: there is none. With `fields`, every field but
// the payload also goes there.
bool ReadChunk(CodedInputStream& stream, int job_id_field, int offset_field, int data_field,
               Piece* piece, std::string* fields) {
  while (const uint32_t tag = stream.ReadTag()) {
    if (tag == BytesTag(data_field)) {
      uint32_t length = 0;
      if (!stream.ReadVarint32(&length)) return false;
      piece->bytes = length;
      piece->position = static_cast<uint64_t>(stream.CurrentPosition());
      if (!stream.Skip(static_cast<int>(length))) return false;
    } else if (job_id_field != 0 && tag == VarintTag(job_id_field)) {
      if (!stream.ReadVarint64(&piece->job_id)) return false;
    } else if (tag == VarintTag(offset_field)) {
      if (!stream.ReadVarint64(&piece->offset)) return false;
    } else if (fields != nullptr &&
               WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      uint32_t length = 0;
      std::string value;
      if (!stream.ReadVarint32(&length) || !stream.ReadString(&value, static_cast<int>(length))) {
        return false;
      }
      Prefix head;
      head.Varint(tag);
      head.Varint(length);
      absl::StrAppend(fields, head.text(), value);
    } else if (!WireFormatLite::SkipField(&stream, tag)) {
      return false;
    }
  }
  return stream.ConsumedEntireMessage();
}

}  // namespace

grpc::Slice WrapMemory(const std::byte* data, size_t bytes, std::shared_ptr<const void> owner) {
  using Owner = std::shared_ptr<const void>;
  // The transport only reads; its interface takes a mutable pointer.
  return grpc::Slice(
      const_cast<std::byte*>(data), bytes, [](void* held) { delete static_cast<Owner*>(held); },
      new Owner(std::move(owner)));
}

grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

grpc::ByteBuffer OperandChunkMessage(uint64_t job_id, ::gemm::v1::OperandRole role, uint64_t offset,
                                     const grpc::Slice& payload) {
  Prefix inner;
  inner.Field(OperandChunk::kJobIdFieldNumber, job_id);
  inner.Field(OperandChunk::kOperandFieldNumber, static_cast<uint64_t>(role));
  inner.Field(OperandChunk::kOffsetFieldNumber, offset);
  inner.Open(OperandChunk::kDataFieldNumber, payload.size());
  return ChunkMessage(MultiplyRequest::kChunkFieldNumber, inner, payload);
}

grpc::ByteBuffer MatrixChunkMessage(uint64_t offset, const grpc::Slice& payload) {
  Prefix inner;
  inner.Field(MatrixChunk::kOffsetFieldNumber, offset);
  inner.Open(MatrixChunk::kDataFieldNumber, payload.size());
  return ChunkMessage(PutMatrixRequest::kChunkFieldNumber, inner, payload);
}

absl::StatusOr<std::optional<Piece>> ParseMultiplyResponse(const grpc::ByteBuffer& message,
                                                           MultiplyResponse* other) {
  {
    Incoming incoming(message);
    CodedInputStream& stream = incoming.stream();
    if (stream.ReadTag() == BytesTag(MultiplyResponse::kChunkFieldNumber)) {
      uint32_t length = 0;
      if (!stream.ReadVarint32(&length) ||
          stream.CurrentPosition() + uint64_t{length} != message.Length()) {
        return Unreadable();
      }
      Piece piece;
      if (!ReadChunk(stream, ResultChunk::kJobIdFieldNumber, ResultChunk::kOffsetFieldNumber,
                     ResultChunk::kDataFieldNumber, &piece, nullptr)) {
        return Unreadable();
      }
      return piece;
    }
  }
  if (absl::Status status = Parse(message, other); !status.ok()) return status;
  return std::nullopt;
}

absl::StatusOr<Piece> ParseGetMatrixResponse(const grpc::ByteBuffer& message,
                                             GetMatrixResponse* fields) {
  Incoming incoming(message);
  Piece piece;
  std::string rest;
  if (!ReadChunk(incoming.stream(), 0, GetMatrixResponse::kOffsetFieldNumber,
                 GetMatrixResponse::kDataFieldNumber, &piece, &rest) ||
      !fields->ParseFromString(rest)) {
    return Unreadable();
  }
  fields->set_offset(piece.offset);
  return piece;
}

absl::Status Parse(const grpc::ByteBuffer& message, google::protobuf::MessageLite* parsed) {
  grpc::ProtoBufferReader reader(const_cast<grpc::ByteBuffer*>(&message));
  return parsed->ParseFromZeroCopyStream(&reader) ? absl::OkStatus() : Unreadable();
}

absl::Status CopyPiece(const grpc::ByteBuffer& message, const Piece& piece, std::byte* to) {
  Incoming incoming(message);
  CodedInputStream& stream = incoming.stream();
  if (!stream.Skip(static_cast<int>(piece.position)) ||
      !stream.ReadRaw(to, static_cast<int>(piece.bytes))) {
    return Unreadable();
  }
  return absl::OkStatus();
}

}  // namespace gemmd::client
