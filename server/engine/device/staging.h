// Fixed blocks of host memory that the device copies from and to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"
#include "server/base/mutex.h"

namespace gemmd {

class StagingPool;

// Who holds blocks for as long as somebody else pleases, such as a call that waits
// for its client to read. What one receiver may hold of a pool is bounded.
using ReceiverId = uint64_t;
// Lets go of a block as soon as it has it; takes any that is free.
inline constexpr ReceiverId kPromptReceiver = 0;
// Unlike all others of this process. Thread-safe.
ReceiverId NewReceiver();

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
  StagingBlock(StagingPool* pool, ReceiverId receiver, std::byte* data)
      : pool_(pool), receiver_(receiver), data_(data) {}

  StagingPool* pool_ = nullptr;
  ReceiverId receiver_ = kPromptReceiver;
  std::byte* data_ = nullptr;
};

// A bounded pool over memory that its owner pins. Thread-safe. Must outlive its
// blocks; at destruction no waiter may be left.
//
// A receiver begins with two blocks and may hold one more for each that it lets go,
// up to a quarter of what is then free, but always one. So one that never lets go
// keeps one or two from the others, one that stops half-way at most a fifth of the
// pool. The last sixteenth is there for prompt receivers alone.
class StagingPool {
 public:
  using Waiter = absl::AnyInvocable<void(StagingBlock)>;

  // `memory` holds `blocks` blocks of `block_bytes`.
  StagingPool(std::byte* memory, size_t block_bytes, size_t blocks);

  // Whether a waiter goes behind those that wait or, for few, before them.
  enum class Turn { kLast, kNext };

  // Calls `waiter` with a block: at once where one is free, else from the
  // thread that gives one back, in the order of the calls but for receivers that
  // hold their share: those wait for their own blocks. The waiter must be short,
  // and may let the block go unused. Called with no lock held. A call from inside
  // a waiter of this pool is served once that waiter has returned, so that a chain
  // of waiters does not nest.
  void Acquire(Waiter waiter, Turn turn = Turn::kLast) {
    Acquire(kPromptReceiver, std::move(waiter), turn);
  }
  void Acquire(ReceiverId receiver, Waiter waiter, Turn turn = Turn::kLast);

  // A block where one is free that the receiver may take, else an empty one.
  StagingBlock TryAcquire(ReceiverId receiver = kPromptReceiver);

  size_t block_bytes() const { return block_bytes_; }
  size_t blocks() const { return blocks_; }
  size_t used_blocks() const;
  // Whether somebody waits for a block and there is none for those that have their
  // due.
  bool scarce() const;

 private:
  friend class StagingBlock;
  struct Share {
    size_t held = 0;
    size_t window = 2;  // grows as blocks are let go
  };
  struct Waiting {
    ReceiverId receiver = kPromptReceiver;
    Waiter waiter;
  };

  void Release(ReceiverId receiver, std::byte* data);
  void HandOut();
  bool MayTake(ReceiverId receiver) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StagingBlock Take(ReceiverId receiver) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The first that may have a block now, taken out of the queue; its waiter is null
  // where there is none.
  Waiting NextServed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t block_bytes_;
  const size_t blocks_;
  const size_t reserve_;  // for prompt receivers
  mutable Mutex mutex_;
  std::vector<std::byte*> free_ ABSL_GUARDED_BY(mutex_);
  std::deque<Waiting> waiters_ ABSL_GUARDED_BY(mutex_);
  // The receivers that hold a block, but for prompt ones.
  absl::flat_hash_map<ReceiverId, Share> shares_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
