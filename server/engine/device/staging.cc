// Blocks wait in a stack (the last one used is the warmest), waiters in a
// queue. Whoever adds to either side then pairs the two. Waiters that stay in the
// queue beside free blocks are those whose receiver has its share.
#include "server/engine/device/staging.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <utility>

namespace gemmd {
namespace {

// Of a pool's blocks, for prompt receivers.
constexpr size_t kReserveShare = 16;
// Of the blocks that are free beside those, for one receiver.
constexpr size_t kReceiverShare = 4;

// The pools whose HandOut() runs on this thread, innermost first. A waiter may
// give back a block, or ask for one: HandOut() further up the stack sees to it,
// so the stack does not grow with the number of waiters.
struct ActivePool {
  const StagingPool* pool;
  ActivePool* outer;
};
thread_local ActivePool* active_pools = nullptr;

bool IsActive(const StagingPool* pool) {
  for (const ActivePool* active = active_pools; active != nullptr; active = active->outer) {
    if (active->pool == pool) return true;
  }
  return false;
}

}  // namespace

ReceiverId NewReceiver() {
  static std::atomic<ReceiverId> last{kPromptReceiver};
  return ++last;
}

StagingBlock& StagingBlock::operator=(StagingBlock&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  pool_ = std::exchange(other.pool_, nullptr);
  receiver_ = other.receiver_;
  data_ = std::exchange(other.data_, nullptr);
  return *this;
}

void StagingBlock::Reset() {
  if (data_ == nullptr) return;
  // Emptied first: the pool may run a waiter that comes back to this object.
  StagingPool* pool = std::exchange(pool_, nullptr);
  pool->Release(receiver_, std::exchange(data_, nullptr));
}

StagingPool::StagingPool(std::byte* memory, size_t block_bytes, size_t blocks)
    : block_bytes_(block_bytes), blocks_(blocks), reserve_(blocks / kReserveShare) {
  free_.reserve(blocks);
  for (size_t i = blocks; i-- > 0;) free_.push_back(memory + i * block_bytes);
}

void StagingPool::Acquire(ReceiverId receiver, Waiter waiter, Turn turn) {
  {
    MutexLock lock(mutex_);
    std::list<Waiting>& queue = receiver == kPromptReceiver ? prompt_ : receivers_;
    if (turn == Turn::kLast) {
      queue.push_back({receiver, std::move(waiter)});
    } else {
      queue.push_front({receiver, std::move(waiter)});
    }
    if (!MayTake(receiver)) return;
  }
  HandOut();
}

StagingBlock StagingPool::TryAcquire(ReceiverId receiver) {
  MutexLock lock(mutex_);
  if (!MayTake(receiver)) return {};
  return Take(receiver);
}

bool StagingPool::MayTake(ReceiverId receiver) const {
  if (receiver == kPromptReceiver) return !free_.empty();
  if (free_.size() <= reserve_) return false;
  const auto share = shares_.find(receiver);
  if (share == shares_.end()) return true;
  return share->second.held <
         std::min(share->second.window, (free_.size() - reserve_) / kReceiverShare);
}

StagingBlock StagingPool::Take(ReceiverId receiver) {
  if (receiver != kPromptReceiver) ++shares_[receiver].held;
  std::byte* data = free_.back();
  free_.pop_back();
  return StagingBlock(this, receiver, data);
}

void StagingPool::Release(ReceiverId receiver, std::byte* data) {
  {
    MutexLock lock(mutex_);
    assert(free_.size() < blocks_);
    free_.push_back(data);
    if (receiver != kPromptReceiver) {
      const auto share = shares_.find(receiver);
      ++share->second.window;
      if (--share->second.held == 0) shares_.erase(share);
    }
    if (prompt_.empty() && receivers_.empty()) return;
  }
  HandOut();
}

StagingPool::Waiting StagingPool::NextServed() {
  for (std::list<Waiting>* waiters : {&prompt_, &receivers_}) {
    // Those passed over hold their share of the blocks, so there are not many of them.
    if (waiters == &receivers_ && free_.size() <= reserve_) break;
    for (auto next = waiters->begin(); next != waiters->end(); ++next) {
      if (!MayTake(next->receiver)) continue;
      Waiting served = std::move(*next);
      waiters->erase(next);
      return served;
    }
  }
  return {};
}

void StagingPool::HandOut() {
  if (IsActive(this)) return;
  ActivePool active{this, active_pools};
  active_pools = &active;
  while (true) {
    Waiting next;
    StagingBlock block;
    {
      MutexLock lock(mutex_);
      if (free_.empty()) break;
      next = NextServed();
      if (!next.waiter) break;
      block = Take(next.receiver);
    }
    next.waiter(std::move(block));
  }
  active_pools = active.outer;
}

size_t StagingPool::used_blocks() const {
  MutexLock lock(mutex_);
  return blocks_ - free_.size();
}

bool StagingPool::scarce() const {
  MutexLock lock(mutex_);
  return !(prompt_.empty() && receivers_.empty()) && free_.size() <= reserve_;
}

}  // namespace gemmd
