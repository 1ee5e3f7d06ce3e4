// Fixed blocks of pinned host memory that the device copies from and to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"
#include "server/base/mutex.h"

namespace gemmd {

class StagingPool;

// A holder of blocks that does not control when it can release them, such as a call that
// waits for its client to read. The blocks that one receiver may hold are bounded.
using ReceiverId = uint64_t;
// For holders that release a block as soon as they have it. They get any free block.
inline constexpr ReceiverId kPromptReceiver = 0;
// A new id, unique in this process. Thread-safe.
ReceiverId NewReceiver();

// One block. Returned to its pool on destruction. Empty when moved from.
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

// A bounded pool over memory that its owner pins. Thread-safe. Must outlive its blocks;
// at destruction there must be no waiter.
//
// A receiver starts with two blocks and may hold one more for each block that it
// releases, up to a quarter of the blocks then free, but always one. So a receiver that
// never releases keeps one or two blocks, and one that stops half-way at most a fifth of
// the pool. The last sixteenth is reserved for prompt receivers.
class StagingPool {
 public:
  using Waiter = absl::AnyInvocable<void(StagingBlock)>;

  // `memory` holds `blocks` blocks of `block_bytes`.
  StagingPool(std::byte* memory, size_t block_bytes, size_t blocks);

  // Whether a waiter queues behind the other waiters or, in few cases, before them.
  enum class Turn { kLast, kNext };

  // Calls `waiter` with a block: at once if one is free, else on the thread that returns
  // one. Waiters are served in the order of the calls, prompt receivers before others, except
  // receivers that hold their share: those wait for their own blocks. The waiter must be short, is
  // called with no lock held, and may release the block unused. A call from inside a waiter of this
  // pool is served once that waiter has returned, so that waiters do not nest.
  void Acquire(Waiter waiter, Turn turn = Turn::kLast) {
    Acquire(kPromptReceiver, std::move(waiter), turn);
  }
  void Acquire(ReceiverId receiver, Waiter waiter, Turn turn = Turn::kLast);

  // A block if one is free that the receiver may take, else an empty one.
  StagingBlock TryAcquire(ReceiverId receiver = kPromptReceiver);

  size_t block_bytes() const { return block_bytes_; }
  size_t blocks() const { return blocks_; }
  size_t used_blocks() const;
  // Whether somebody waits for a block while no block is free but those reserved for
  // prompt receivers.
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
  // Removes from its queue and returns the first who may have a block now. The waiter is null if
  // there is none.
  Waiting NextServed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t block_bytes_;
  const size_t blocks_;
  const size_t reserve_;  // for prompt receivers
  mutable Mutex mutex_;
  std::vector<std::byte*> free_ ABSL_GUARDED_BY(mutex_);
  // Apart: while only the reserve is free, receivers need not be looked at, of whom there may be as
  // many as slow clients.
  std::list<Waiting> prompt_ ABSL_GUARDED_BY(mutex_);
  std::list<Waiting> receivers_ ABSL_GUARDED_BY(mutex_);
  // The receivers that hold a block, without prompt ones.
  absl::flat_hash_map<ReceiverId, Share> shares_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
