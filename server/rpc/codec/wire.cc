#include "server/rpc/codec/wire.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"

namespace gemmd {
namespace {

constexpr int kMaxVarintBytes = 10;
constexpr int kMaxTagBytes = 5;

}  // namespace

WireReader::WireReader(const grpc::ByteBuffer& message) {
  if (!message.Valid() || !message.Dump(&slices_).ok()) slices_.clear();
  for (const grpc::Slice& slice : slices_) left_ += slice.size();
  SkipEmptySlices();
}

void WireReader::SkipEmptySlices() {
  while (slice_ < slices_.size() && position_ == slices_[slice_].size()) {
    ++slice_;
    position_ = 0;
  }
}

void WireReader::Advance(size_t bytes) {
  position_ += bytes;
  left_ -= bytes;
  SkipEmptySlices();
}

bool WireReader::ReadByte(uint8_t& byte) {
  if (left_ == 0) return false;
  byte = slices_[slice_].begin()[position_];
  Advance(1);
  return true;
}

bool WireReader::ReadVarint(uint64_t& value) {
  value = 0;
  for (int i = 0; i < kMaxVarintBytes; ++i) {
    uint8_t byte;
    if (!ReadByte(byte)) return false;
    // The tenth byte has room for one bit.
    if (i == kMaxVarintBytes - 1 && byte > 1) return false;
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return true;
  }
  return false;
}

bool WireReader::ReadTag(WireTag& tag) {
  const size_t before = left_;
  uint64_t value;
  if (!ReadVarint(value) || before - left_ > kMaxTagBytes || value > UINT32_MAX) return false;
  tag.field = static_cast<uint32_t>(value >> 3);
  tag.type = static_cast<uint32_t>(value & 7);
  return tag.field != 0;
}

bool WireReader::ReadLength(size_t& bytes) {
  const size_t before = left_;
  uint64_t value;
  if (!ReadVarint(value) || before - left_ > kMaxTagBytes || value > left_) return false;
  bytes = static_cast<size_t>(value);
  return true;
}

bool WireReader::Skip(size_t bytes) {
  if (bytes > left_) return false;
  while (bytes > 0) {
    const size_t step = std::min(bytes, left_in_slice());
    Advance(step);
    bytes -= step;
  }
  return true;
}

bool WireReader::SkipField(const WireTag& tag) {
  uint64_t number;
  size_t bytes;
  switch (static_cast<WireType>(tag.type)) {
    case WireType::kVarint:
      return ReadVarint(number);
    case WireType::kFixed64:
      return Skip(8);
    case WireType::kFixed32:
      return Skip(4);
    case WireType::kBytes:
      return ReadLength(bytes) && Skip(bytes);
  }
  return false;
}

absl::Cord WireReader::Take(size_t bytes) {
  absl::Cord taken;
  while (bytes > 0) {
    const grpc::Slice& slice = slices_[slice_];
    const size_t step = std::min(bytes, left_in_slice());
    const absl::string_view piece(reinterpret_cast<const char*>(slice.begin()) + position_, step);
    if (step < kCopyBelow) {
      taken.Append(piece);
    } else {
      // A slice this long keeps its bytes outside itself, so `piece` stays valid
      // in every copy of it.
      taken.Append(absl::MakeCordFromExternal(piece, [kept = slice]() {}));
    }
    Advance(step);
    bytes -= step;
  }
  return taken;
}

}  // namespace gemmd
