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

// A field's number and type, which precede it.
struct WireTag {
  uint32_t field = 0;
  uint32_t type = 0;  // a WireType, or one of the group types

  bool Is(uint32_t wanted_field, WireType wanted_type) const {
    return field == wanted_field && type == static_cast<uint32_t>(wanted_type);
  }
};

// Reads a message from its first byte to its last. Each Read and Skip returns false
// where the message ends early, or has something that a strict writer does not write;
// the reader must not be used any more. Whether that is an error, a full parser must
// decide.
class WireReader {
 public:
  // Holds references on the slices of `message`.
  explicit WireReader(const grpc::ByteBuffer& message);

  size_t left() const { return left_; }

  bool ReadVarint(uint64_t& value);
  bool ReadTag(WireTag& tag);
  // Reads a length. False if it exceeds the rest of the message.
  bool ReadLength(size_t& bytes);
  bool Skip(size_t bytes);
  // Skips the content of an unknown field. False for groups.
  bool SkipField(const WireTag& tag);

  // Takes the next `bytes` <= left() bytes, as references to the slices. Short pieces
  // are copied, so that a few bytes do not keep a whole receive buffer alive.
  absl::Cord Take(size_t bytes);

 private:
  // Pieces below this are cheaper to copy than to keep.
  static constexpr size_t kCopyBelow = 1024;

  bool ReadByte(uint8_t& byte);
  // Advances by `bytes` within the current slice.
  void Advance(size_t bytes);
  void SkipEmptySlices();
  size_t left_in_slice() const { return slices_[slice_].size() - position_; }

  std::vector<grpc::Slice> slices_;
  size_t slice_ = 0;     // the one that holds the next byte, where left_ > 0
  size_t position_ = 0;  // of that byte in it
  size_t left_ = 0;
};

}  // namespace gemmd
