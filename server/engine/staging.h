// Fixed blocks of host memory that the device copies from and to.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"
#include "server/engine/mutex.h"

namespace gemmd {

class StagingPool;

// One block, given back on destruction. Empty when moved from.
class StagingBlock {
 public:
  StagingBlock() = default;
  StagingBlock(StagingBlock&& other) noexcept { *this = std::move(other); }
  StagingBlock& operator=(StagingBlock&& other) noexcept;
  ~StagingBlock() { Reset(); }

  std::byte* data() const { return data_; }
  explicit operator bool() const { return data_ != nullptr; }
  void Reset();

 private:
  friend class StagingPool;
  StagingBlock(StagingPool* pool, std::byte* data) : pool_(pool), data_(data) {}

  StagingPool* pool_ = nullptr;
  std::byte* data_ = nullptr;
};

// A bounded pool over memory that its owner pins. Thread-safe. Must outlive its
// blocks; at destruction no waiter may be left.
class StagingPool {
 public:
  using Waiter = absl::AnyInvocable<void(StagingBlock)>;

  // `memory` holds `blocks` blocks of `block_bytes`.
  StagingPool(std::byte* memory, size_t block_bytes, size_t blocks);

  // Whether a waiter goes behind those that wait or, for few, before them.
  enum class Turn { kLast, kNext };

  // Calls `waiter` with a block: at once where one is free, else from the
  // thread that gives one back, in the order of the calls. The waiter must be
  // short, and may let the block go unused. Called with no lock held. A call
  // from inside a waiter of this pool is served once that waiter has returned,
  // so that a chain of waiters does not nest.
  void Acquire(Waiter waiter, Turn turn = Turn::kLast);

  // A block where one is free and nobody waits, else an empty one.
  StagingBlock TryAcquire();

  size_t block_bytes() const { return block_bytes_; }
  size_t blocks() const { return blocks_; }
  size_t used_blocks() const;

 private:
  friend class StagingBlock;
  void Release(std::byte* data);
  void HandOut();

  const size_t block_bytes_;
  const size_t blocks_;
  mutable Mutex mutex_;
  std::vector<std::byte*> free_ ABSL_GUARDED_BY(mutex_);
  std::deque<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
