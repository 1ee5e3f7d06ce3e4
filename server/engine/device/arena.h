// Memory taken once and handed out in pieces, so that no job allocates from the
// driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "server/base/mutex.h"

namespace gemmd {

class Arena;

// A piece of an arena, given back on destruction. Empty when moved from.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer() { Reset(); }

  std::byte* data() const { return data_; }
  // What was asked for, rounded up to Arena::kAlignment.
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

// How long a piece is going to be held. What stays and what passes are placed at
// opposite ends, so that nothing that stays splits the memory that jobs pass through.
enum class Stay : uint8_t {
  kPassing,  // a job's own: as long as that
  kStaying,  // a resident matrix's: until somebody deletes it
};

// Best fit with coalescing over [base, base + bytes): the smallest free piece for
// what passes, from its front; for what stays the end of the last free piece that is
// large enough. Never touches the memory itself, so it serves host and device memory
// alike. Thread-safe. Must outlive its buffers.
class Arena {
 public:
  static constexpr size_t kAlignment = 512;

  Arena(std::byte* base, size_t bytes);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `bytes` >= 1, rounded up to kAlignment. RESOURCE_EXHAUSTED with the bytes
  // asked for, free, and free in one piece.
  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes, Stay stay = Stay::kPassing);

  size_t capacity() const { return capacity_; }
  size_t used() const;
  size_t largest_free() const;

 private:
  friend class DeviceBuffer;
  void Free(std::byte* data, size_t bytes);
  // The offset of `bytes` now taken out of a free piece; nullopt where none fits.
  std::optional<size_t> Take(size_t bytes, Stay stay) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddFree(size_t offset, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::byte* const base_;
  const size_t capacity_;
  mutable Mutex mutex_;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<size_t, size_t> free_by_offset_ ABSL_GUARDED_BY(mutex_);           // offset -> bytes
  std::set<std::pair<size_t, size_t>> free_by_size_ ABSL_GUARDED_BY(mutex_);  // bytes, offset
};

}  // namespace gemmd
