// Allocates pieces of memory that was taken once, so that no job allocates from the
// driver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "server/base/mutex.h"

namespace gemmd {

class Arena;

// A piece of an arena. Freed on destruction. Empty when moved from.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer() { Reset(); }

  std::byte* data() const { return data_; }
  // The requested size, rounded up to Arena::kAlignment.
  size_t bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }
  void Reset();

 private:
  friend class Arena;
  DeviceBuffer(Arena* arena, std::byte* data, size_t bytes)
      : arena_(arena), data_(data), bytes_(bytes) {}

  Arena* arena_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// How long a piece is going to be held: until a job ends, or until a resident matrix is deleted.
// The two kinds lie at opposite ends, so that matrices do not fragment the memory of jobs.
enum class Lifetime : uint8_t { kJob, kMatrix };

// An allocator with coalescing over [base, base + bytes). kJob takes the front of the smallest free
// piece that is large enough (best fit). kMatrix takes the end of the last one. It passes over
// pieces of less than twice the size that lie behind many that are too small. Never accesses the
// memory itself, so it serves host and device memory alike. Thread-safe. Must outlive its buffers.
class Arena {
 public:
  static constexpr size_t kAlignment = 512;
  static constexpr size_t RoundedUp(size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  Arena(std::byte* base, size_t bytes);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `bytes` >= 1, rounded up to kAlignment. RESOURCE_EXHAUSTED names the bytes requested,
  // free in total, and free in one piece.
  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes, Lifetime lifetime = Lifetime::kJob);

  size_t capacity() const { return capacity_; }
  size_t used() const;
  // The error of Allocate.
  absl::Status NoRoom(size_t bytes) const;
  size_t largest_free() const;

 private:
  friend class DeviceBuffer;
  void Free(std::byte* data, size_t bytes);
  // Takes `bytes` out of a free piece and returns their offset; nullopt where none fits.
  std::optional<size_t> Take(size_t bytes, Lifetime lifetime) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The offset of the last free piece that has `bytes`; nullopt where none is found.
  std::optional<size_t> LastFree(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Refusal(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddFree(size_t offset, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveFree(size_t offset, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::byte* const base_;
  const size_t capacity_;
  mutable Mutex mutex_;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<size_t, size_t> free_by_offset_ ABSL_GUARDED_BY(mutex_);           // offset -> bytes
  std::set<std::pair<size_t, size_t>> free_by_size_ ABSL_GUARDED_BY(mutex_);  // bytes, offset
  // The offsets of the pieces whose sizes have that many binary digits.
  std::array<std::set<size_t>, std::numeric_limits<size_t>::digits + 1> free_by_digits_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
