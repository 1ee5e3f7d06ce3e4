#include "server/rpc/codec/codec.h"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/proto_buffer_writer.h"
#include "server/rpc/codec/wire.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;

// Both requests with payload have `header = 1`, `chunk = 2`, and in the chunk
// varints from 1 on and `data = 15`.
constexpr uint32_t kChunkField = 2;
constexpr uint32_t kLastMessageField = 3;
constexpr uint32_t kDataField = 15;

// Pieces up to this long are cheaper to copy than to refer to.
constexpr size_t kCopyUpTo = 16 * 1024;

struct ScannedChunk {
  std::array<uint64_t, 3> numbers{};  // fields 1, 2, 3
  absl::Cord data;
};

// Reads the `bytes` bytes of a chunk. False for anything unusual.
bool ScanChunk(WireReader& reader, size_t bytes, uint32_t number_count, ScannedChunk& chunk) {
  const size_t end = reader.left() - bytes;
  while (reader.left() > end) {
    WireTag tag;
    if (!reader.ReadTag(tag)) return false;
    if (tag.Is(kDataField, WireType::kBytes)) {
      size_t data_bytes;
      if (!reader.ReadLength(data_bytes)) return false;
      if (reader.left() < end || data_bytes > reader.left() - end) return false;
      chunk.data = reader.Take(data_bytes);
    } else if (tag.field <= number_count) {
      if (!tag.Is(tag.field, WireType::kVarint)) return false;
      if (!reader.ReadVarint(chunk.numbers[tag.field - 1])) return false;
    } else if (tag.field == kDataField || !reader.SkipField(tag)) {
      return false;
    }
  }
  return reader.left() == end;
}

// Whether `message` is a plain chunk with `number_count` number fields, then in
// `chunk`. Anything else, right or wrong, is left to protobuf.
bool ScanRequest(const grpc::ByteBuffer& message, uint32_t number_count, ScannedChunk& chunk) {
  WireReader reader(message);
  bool found = false;
  while (reader.left() > 0) {
    WireTag tag;
    if (!reader.ReadTag(tag)) return false;
    if (tag.Is(kChunkField, WireType::kBytes) && !found) {
      size_t bytes;
      if (!reader.ReadLength(bytes) || !ScanChunk(reader, bytes, number_count, chunk)) return false;
      found = true;
    } else if (tag.field <= kLastMessageField || !reader.SkipField(tag)) {
      return false;
    }
  }
  return found;
}

absl::Status NotParsed(const grpc::ByteBuffer& message) {
  return absl::InvalidArgumentError(
      absl::StrCat("its ", message.Length(), " bytes are not a message of that type"));
}

// The bytes before a chunk's data: tags, numbers, lengths.
class Prefix {
 public:
  void Varint(uint64_t value) {
    while (value >= 0x80) {
      bytes_[size_++] = static_cast<uint8_t>(value | 0x80);
      value >>= 7;
    }
    bytes_[size_++] = static_cast<uint8_t>(value);
  }
  void Tag(uint32_t field, WireType type) { Varint(field << 3 | static_cast<uint32_t>(type)); }
  void Number(uint32_t field, uint64_t value) {
    Tag(field, WireType::kVarint);
    Varint(value);
  }
  void Append(const Prefix& other) {
    std::memcpy(bytes_.data() + size_, other.bytes_.data(), other.size_);
    size_ += other.size_;
  }
  const uint8_t* data() const { return bytes_.data(); }
  size_t size() const { return size_; }

 private:
  // Two prefixes of at most 4 tags and 4 varints each.
  std::array<uint8_t, 96> bytes_;
  size_t size_ = 0;
};

// Keeps a piece's memory until gRPC lets go of the slice on it, on any thread. gRPC's count
// of references orders that after Lend; `lent_` shows it to the thread sanitizer, too, which
// does not see inside gRPC.
class Loan {
 public:
  static void* Lend(std::shared_ptr<StagingBlock> memory) {
    auto* loan = new Loan(std::move(memory));
    loan->lent_.store(true, std::memory_order_release);
    return loan;
  }
  static void End(void* loan) {
    auto* ended = static_cast<Loan*>(loan);
    ended->lent_.load(std::memory_order_acquire);
    delete ended;
  }

 private:
  explicit Loan(std::shared_ptr<StagingBlock> memory) : memory_(std::move(memory)) {}

  const std::shared_ptr<StagingBlock> memory_;
  std::atomic<bool> lent_ = false;
};

grpc::ByteBuffer Join(const Prefix& prefix, ResultPiece piece) {
  const size_t bytes = piece.bytes.size();
  if (bytes <= kCopyUpTo) {
    std::array<uint8_t, sizeof(Prefix) + kCopyUpTo> joined;
    std::memcpy(joined.data(), prefix.data(), prefix.size());
    if (bytes > 0) std::memcpy(joined.data() + prefix.size(), piece.bytes.data(), bytes);
    const grpc::Slice slice(joined.data(), prefix.size() + bytes);
    return grpc::ByteBuffer(&slice, 1);
  }
  auto* data = const_cast<std::byte*>(piece.bytes.data());  // slices are never written to
  const std::array<grpc::Slice, 2> slices = {
      grpc::Slice(prefix.data(), prefix.size()),
      grpc::Slice(data, bytes, Loan::End, Loan::Lend(std::move(piece.owner)))};
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace

bool Parse(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message) {
  if (!bytes.Valid()) return message.ParseFromArray(nullptr, 0);
  grpc::ByteBuffer copy = bytes;  // refers to the same slices; the reader wants it mutable
  grpc::ProtoBufferReader reader(&copy);
  return reader.status().ok() && message.ParseFromZeroCopyStream(&reader) && reader.status().ok();
}

grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message) {
  const size_t bytes = message.ByteSizeLong();
  if (bytes == 0) {
    const grpc::Slice empty;
    return grpc::ByteBuffer(&empty, 1);
  }
  const grpc::Slice slice(bytes);
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

absl::StatusOr<MultiplyMessage> DecodeMultiply(const grpc::ByteBuffer& message) {
  ScannedChunk scanned;
  if (ScanRequest(message, 3, scanned)) {
    return OperandBytes{.job_id = scanned.numbers[0],
                        .operand = static_cast<int>(scanned.numbers[1]),
                        .offset = scanned.numbers[2],
                        .data = std::move(scanned.data)};
  }
  v1::MultiplyRequest request;
  if (!Parse(message, request)) return NotParsed(message);
  switch (request.message_case()) {
    case v1::MultiplyRequest::kHeader:
      return std::move(*request.mutable_header());
    case v1::MultiplyRequest::kChunk: {
      v1::OperandChunk& chunk = *request.mutable_chunk();
      return OperandBytes{.job_id = chunk.job_id(),
                          .operand = chunk.operand(),
                          .offset = chunk.offset(),
                          .data = absl::Cord(std::move(*chunk.mutable_data()))};
    }
    case v1::MultiplyRequest::kCancel:
      return std::move(*request.mutable_cancel());
    case v1::MultiplyRequest::MESSAGE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("none of header, chunk and cancel is set");
}

absl::StatusOr<PutMatrixMessage> DecodePutMatrix(const grpc::ByteBuffer& message) {
  ScannedChunk scanned;
  if (ScanRequest(message, 1, scanned)) {
    return MatrixBytes{.offset = scanned.numbers[0], .data = std::move(scanned.data)};
  }
  v1::PutMatrixRequest request;
  if (!Parse(message, request)) return NotParsed(message);
  switch (request.message_case()) {
    case v1::PutMatrixRequest::kHeader:
      return std::move(*request.mutable_header());
    case v1::PutMatrixRequest::kChunk: {
      v1::MatrixChunk& chunk = *request.mutable_chunk();
      return MatrixBytes{.offset = chunk.offset(),
                         .data = absl::Cord(std::move(*chunk.mutable_data()))};
    }
    case v1::PutMatrixRequest::MESSAGE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("neither header nor chunk is set");
}

grpc::ByteBuffer EncodeResultChunk(uint64_t job_id, ResultPiece piece) {
  Prefix chunk;
  chunk.Number(v1::ResultChunk::kJobIdFieldNumber, job_id);
  chunk.Number(v1::ResultChunk::kOffsetFieldNumber, piece.offset);
  chunk.Tag(v1::ResultChunk::kDataFieldNumber, WireType::kBytes);
  chunk.Varint(piece.bytes.size());
  Prefix response;
  response.Tag(v1::MultiplyResponse::kChunkFieldNumber, WireType::kBytes);
  response.Varint(chunk.size() + piece.bytes.size());
  response.Append(chunk);
  return Join(response, std::move(piece));
}

grpc::ByteBuffer EncodeMatrixData(ResultPiece piece) {
  Prefix response;
  response.Number(v1::GetMatrixResponse::kOffsetFieldNumber, piece.offset);
  response.Tag(v1::GetMatrixResponse::kDataFieldNumber, WireType::kBytes);
  response.Varint(piece.bytes.size());
  return Join(response, std::move(piece));
}

}  // namespace gemmd
