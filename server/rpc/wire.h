// Reads protobuf's wire format from a received message without joining its
// slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/cord.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace gemmd {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// A field's number and type, as they precede it.
struct WireTag {
  uint32_t field = 0;
  uint32_t type = 0;  // a WireType, or one of the group types

  bool Is(uint32_t wanted_field, WireType wanted_type) const {
    return field == wanted_field && type == static_cast<uint32_t>(wanted_type);
  }
};

// Walks a message from its first byte to its last, never back. Each Read and
// Skip is false, and the reader of no more use, where the message ends early or
// holds something that a strict writer does not write; whether that is an error
// is for a full parser to say.
class WireReader {
 public:
  // Holds references on the slices of `message`.
  explicit WireReader(const grpc::ByteBuffer& message);

  size_t left() const { return left_; }

  bool ReadVarint(uint64_t& value);
  bool ReadTag(WireTag& tag);
  // A length that the rest of the message can hold.
  bool ReadLength(size_t& bytes);
  bool Skip(size_t bytes);
  // The content of a field that nobody here knows. False for groups.
  bool SkipField(const WireTag& tag);

  // The next `bytes` <= left() bytes, as references to the slices; short pieces
  // are copied, so that a few bytes do not keep a whole receive buffer.
  absl::Cord Take(size_t bytes);

 private:
  // Pieces below this are cheaper to copy than to keep.
  static constexpr size_t kCopyBelow = 1024;

  bool ReadByte(uint8_t& byte);
  // Moves on by `bytes` within the present slice.
  void Advance(size_t bytes);
  void SkipEmptySlices();
  size_t left_in_slice() const { return slices_[slice_].size() - position_; }

  std::vector<grpc::Slice> slices_;
  size_t slice_ = 0;     // the one that holds the next byte, where left_ > 0
  size_t position_ = 0;  // of that byte in it
  size_t left_ = 0;
};

}  // namespace gemmd
