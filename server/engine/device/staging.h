// Fixed blocks of pinned host memory that the device copies from and to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
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

  // Whether a waiter queues behind all others or, in few cases, before those of kLast.
  enum class Turn { kLast, kNext };

  // The place of a waiter. Numbers of later calls of the same turn are higher.
  struct Place {
    ReceiverId receiver = kPromptReceiver;
    int64_t number = 0;  // none
  };

  // Calls `waiter` with a block: at once if one is free, else on the thread that returns
  // one. Waiters are served in the order of the calls, prompt receivers before others, except
  // receivers that hold their share: those wait for their own blocks. The waiter must be short, is
  // called with no lock held, and may release the block unused. A call from inside a waiter of this
  // pool is served once that waiter has returned, so that waiters do not nest.
  Place Acquire(Waiter waiter, Turn turn = Turn::kLast) {
    return Acquire(kPromptReceiver, std::move(waiter), turn);
  }
  Place Acquire(ReceiverId receiver, Waiter waiter, Turn turn = Turn::kLast) {
    const Place place = Queue(receiver, std::move(waiter), turn);
    Serve();
    return place;
  }

  // The two steps of Acquire: so that a caller knows the place before its waiter is called.
  Place Queue(ReceiverId receiver, Waiter waiter, Turn turn = Turn::kLast);
  void Serve();

  // Destroys a waiter that was not called yet, and has no effect on others.
  void Withdraw(const Place& place);

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
  using Waiters = std::map<int64_t, Waiter>;  // by the numbers of their places
  struct Receiver {
    size_t held = 0;
    size_t window = 2;  // grows as blocks are let go
    Waiters waiters;
    bool waits = false;            // counted in waiting_receivers_
    std::optional<int64_t> ready;  // its number in ready_
  };

  void Release(ReceiverId receiver, std::byte* data);
  bool MayTake(ReceiverId receiver) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StagingBlock Take(ReceiverId receiver) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes and returns the first who may have a block now, and whose it is. The waiter is null if
  // there is none.
  std::pair<ReceiverId, Waiter> NextServed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After each change of a receiver, which may have nothing left.
  void Settle(ReceiverId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t block_bytes_;
  const size_t blocks_;
  const size_t reserve_;  // for prompt receivers
  mutable Mutex mutex_;
  std::vector<std::byte*> free_ ABSL_GUARDED_BY(mutex_);
  // The highest numbers that were given: above 0 for Turn::kLast, below for Turn::kNext.
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<int64_t>::min();
  Waiters prompt_ ABSL_GUARDED_BY(mutex_);
  // Those that hold a block, or wait for one, without prompt ones.
  absl::flat_hash_map<ReceiverId, Receiver> receivers_ ABSL_GUARDED_BY(mutex_);
  // For those that wait and hold less than their window, the number of the first waiter. The others
  // wait for blocks of their own, and are not looked at when somebody else lets one go.
  std::set<std::pair<int64_t, ReceiverId>> ready_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_receivers_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gemmd
