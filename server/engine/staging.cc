// Blocks wait in a stack (the last one used is the warmest), waiters in a
// queue. Whoever adds to either side then pairs the two.
#include "server/engine/staging.h"

#include <cassert>
#include <utility>

namespace gemmd {
namespace {

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

StagingBlock& StagingBlock::operator=(StagingBlock&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  pool_ = std::exchange(other.pool_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  return *this;
}

void StagingBlock::Reset() {
  if (data_ == nullptr) return;
  // Emptied first: the pool may run a waiter that comes back to this object.
  StagingPool* pool = std::exchange(pool_, nullptr);
  pool->Release(std::exchange(data_, nullptr));
}

StagingPool::StagingPool(std::byte* memory, size_t block_bytes, size_t blocks)
    : block_bytes_(block_bytes), blocks_(blocks) {
  free_.reserve(blocks);
  for (size_t i = blocks; i-- > 0;) free_.push_back(memory + i * block_bytes);
}

void StagingPool::Acquire(Waiter waiter, Turn turn) {
  {
    MutexLock lock(mutex_);
    if (turn == Turn::kLast) {
      waiters_.push_back(std::move(waiter));
    } else {
      waiters_.push_front(std::move(waiter));
    }
    if (free_.empty()) return;
  }
  HandOut();
}

StagingBlock StagingPool::TryAcquire() {
  MutexLock lock(mutex_);
  if (free_.empty() || !waiters_.empty()) return {};
  std::byte* data = free_.back();
  free_.pop_back();
  return StagingBlock(this, data);
}

void StagingPool::Release(std::byte* data) {
  {
    MutexLock lock(mutex_);
    assert(free_.size() < blocks_);
    free_.push_back(data);
    if (waiters_.empty()) return;
  }
  HandOut();
}

void StagingPool::HandOut() {
  if (IsActive(this)) return;
  ActivePool active{this, active_pools};
  active_pools = &active;
  while (true) {
    Waiter waiter;
    std::byte* data = nullptr;
    {
      MutexLock lock(mutex_);
      if (free_.empty() || waiters_.empty()) break;
      waiter = std::move(waiters_.front());
      waiters_.pop_front();
      data = free_.back();
      free_.pop_back();
    }
    waiter(StagingBlock(this, data));
  }
  active_pools = active.outer;
}

size_t StagingPool::used_blocks() const {
  MutexLock lock(mutex_);
  return blocks_ - free_.size();
}

}  // namespace gemmd
