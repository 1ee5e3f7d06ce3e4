// Best fit with coalescing: two views of the free pieces, one to find the
// smallest that is large enough, one to find a freed piece's neighbours.
#include "server/engine/arena.h"

#include <cassert>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gemmd {
namespace {

constexpr size_t RoundDown(size_t bytes) { return bytes / Arena::kAlignment * Arena::kAlignment; }

}  // namespace

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  arena_ = std::exchange(other.arena_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void DeviceBuffer::Reset() {
  if (data_ == nullptr) return;
  arena_->Free(data_, bytes_);
  arena_ = nullptr;
  data_ = nullptr;
  bytes_ = 0;
}

Arena::Arena(std::byte* base, size_t bytes) : base_(base), capacity_(RoundDown(bytes)) {
  if (capacity_ == 0) return;
  free_by_offset_.emplace(0, capacity_);
  free_by_size_.emplace(capacity_, 0);
}

absl::StatusOr<DeviceBuffer> Arena::Allocate(size_t bytes) {
  MutexLock lock(mutex_);
  // Compared before rounding up, which could overflow.
  if (bytes <= capacity_) {
    const size_t rounded = RoundDown(bytes + kAlignment - 1);
    // The smallest piece that fits, and of equal ones the first in memory.
    const auto best = free_by_size_.lower_bound({rounded, 0});
    if (rounded > 0 && best != free_by_size_.end()) {
      const auto [piece, offset] = *best;
      free_by_size_.erase(best);
      free_by_offset_.erase(offset);
      if (piece > rounded) {
        free_by_offset_.emplace(offset + rounded, piece - rounded);
        free_by_size_.emplace(piece - rounded, offset + rounded);
      }
      used_ += rounded;
      return DeviceBuffer(this, base_ + offset, rounded);
    }
  }
  const size_t largest = free_by_size_.empty() ? 0 : free_by_size_.rbegin()->first;
  return absl::ResourceExhaustedError(absl::StrCat("device memory: ", bytes, " bytes asked for, ",
                                                   capacity_ - used_, " of ", capacity_, " free, ",
                                                   largest, " in one piece"));
}

void Arena::Free(std::byte* data, size_t bytes) {
  MutexLock lock(mutex_);
  size_t offset = static_cast<size_t>(data - base_);
  assert(used_ >= bytes && offset + bytes <= capacity_);
  used_ -= bytes;
  const auto after = free_by_offset_.lower_bound(offset);
  if (after != free_by_offset_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      free_by_size_.erase({before->second, before->first});
      free_by_offset_.erase(before);
    }
  }
  if (after != free_by_offset_.end() && after->first == offset + bytes) {
    bytes += after->second;
    free_by_size_.erase({after->second, after->first});
    free_by_offset_.erase(after);
  }
  free_by_offset_.emplace(offset, bytes);
  free_by_size_.emplace(bytes, offset);
}

size_t Arena::used() const {
  MutexLock lock(mutex_);
  return used_;
}

size_t Arena::largest_free() const {
  MutexLock lock(mutex_);
  return free_by_size_.empty() ? 0 : free_by_size_.rbegin()->first;
}

}  // namespace gemmd
