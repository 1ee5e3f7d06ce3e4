// Best fit with coalescing: three views of the free pieces, one to find a freed piece's
// neighbours, one to find the smallest that is large enough, one to find the last.
#include "server/engine/device/arena.h"

#include <cassert>
#include <iterator>
#include <utility>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"
#include "server/engine/bounds/bound_error.h"

namespace gemmd {
namespace {

// So many pieces are looked at that may be too small: a thousand holes that a caller leaves
// between small matrices are no reason for others to wait.
constexpr int kLooks = 64;

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
  MutexLock lock(mutex_);
  AddFree(0, capacity_);
}

void Arena::AddFree(size_t offset, size_t bytes) {
  if (bytes == 0) return;
  free_by_offset_.emplace(offset, bytes);
  free_by_size_.emplace(bytes, offset);
  free_by_digits_[absl::bit_width(bytes)].insert(offset);
}

void Arena::RemoveFree(size_t offset, size_t bytes) {
  free_by_offset_.erase(offset);
  free_by_size_.erase({bytes, offset});
  free_by_digits_[absl::bit_width(bytes)].erase(offset);
}

std::optional<size_t> Arena::LastFree(size_t bytes) const {
  const size_t digits = absl::bit_width(bytes);
  std::optional<size_t> last;
  // With more digits than `bytes` every piece is large enough.
  for (size_t more = digits + 1; more < free_by_digits_.size(); ++more) {
    const std::set<size_t>& pieces = free_by_digits_[more];
    if (!pieces.empty() && last < *pieces.rbegin()) last = *pieces.rbegin();
  }
  int looks = 0;
  const std::set<size_t>& alike = free_by_digits_[digits];
  for (auto piece = alike.rbegin(); piece != alike.rend() && last < *piece; ++piece) {
    if (free_by_offset_.at(*piece) >= bytes) return *piece;
    if (++looks == kLooks) break;
  }
  return last;
}

std::optional<size_t> Arena::Take(size_t bytes, Lifetime lifetime) {
  // The smallest piece that fits, and of equal ones the first in memory.
  const auto best = free_by_size_.lower_bound({bytes, 0});
  if (bytes == 0 || best == free_by_size_.end()) return std::nullopt;
  size_t begin = best->second;
  if (lifetime == Lifetime::kMatrix) begin = LastFree(bytes).value_or(begin);
  const size_t piece = free_by_offset_.at(begin);
  RemoveFree(begin, piece);
  const size_t rest = piece - bytes;
  if (lifetime == Lifetime::kMatrix) {
    AddFree(begin, rest);
    return begin + rest;
  }
  AddFree(begin + bytes, rest);
  return begin;
}

absl::StatusOr<DeviceBuffer> Arena::Allocate(size_t bytes, Lifetime lifetime) {
  MutexLock lock(mutex_);
  // Compared before rounding up, which could overflow.
  if (bytes <= capacity_) {
    const size_t rounded = RoundedUp(bytes);
    if (const std::optional<size_t> offset = Take(rounded, lifetime); offset.has_value()) {
      used_ += rounded;
      return DeviceBuffer(this, base_ + *offset, rounded);
    }
  }
  return Refusal(bytes);
}

absl::Status Arena::NoRoom(size_t bytes) const {
  MutexLock lock(mutex_);
  return Refusal(bytes);
}

absl::Status Arena::Refusal(size_t bytes) const {
  const size_t largest = free_by_size_.empty() ? 0 : free_by_size_.rbegin()->first;
  return BoundError(
      {.bound = "device-memory-bytes",
       .retry_after = bytes <= capacity_ ? std::optional(kRetrySoon) : std::nullopt},
      absl::StrCat("device memory (--device-memory-bytes): ", bytes, " bytes asked for, ",
                   capacity_ - used_, " of ", capacity_, " free, ", largest, " in one piece"));
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
      RemoveFree(before->first, before->second);
    }
  }
  if (after != free_by_offset_.end() && after->first == offset + bytes) {
    bytes += after->second;
    RemoveFree(after->first, after->second);
  }
  AddFree(offset, bytes);
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
