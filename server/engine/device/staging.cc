// Blocks wait in a stack (the last one used is the warmest), waiters in queues. A call that adds to
// either side then pairs the two. Waiters that stay beside free blocks are those whose receiver has
// its share.
#include "server/engine/device/staging.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <tuple>
#include <utility>

namespace gemmd {
namespace {

// One in so many of a pool's blocks is for prompt receivers.
constexpr size_t kReserveShare = 16;
// One in so many of the other free blocks is for one receiver.
constexpr size_t kReceiverShare = 4;

// The pools whose Serve() runs on this thread, innermost first. A waiter may
// give back a block, or ask for one: Serve() further up the stack sees to it,
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

StagingPool::Place StagingPool::Queue(ReceiverId receiver, Waiter waiter, Turn turn) {
  MutexLock lock(mutex_);
  const Place place{.receiver = receiver, .number = turn == Turn::kLast ? ++last_ : ++next_};
  if (receiver == kPromptReceiver) {
    prompt_.emplace(place.number, std::move(waiter));
  } else {
    receivers_[receiver].waiters.emplace(place.number, std::move(waiter));
    Settle(receiver);
  }
  return place;
}

void StagingPool::Withdraw(const Place& place) {
  Waiters::node_type withdrawn;  // outlives the lock
  MutexLock lock(mutex_);
  if (place.receiver == kPromptReceiver) {
    withdrawn = prompt_.extract(place.number);
    return;
  }
  const auto receiver = receivers_.find(place.receiver);
  if (receiver == receivers_.end()) return;
  withdrawn = receiver->second.waiters.extract(place.number);
  Settle(place.receiver);
}

StagingBlock StagingPool::TryAcquire(ReceiverId receiver) {
  MutexLock lock(mutex_);
  if (!MayTake(receiver)) return {};
  return Take(receiver);
}

bool StagingPool::MayTake(ReceiverId receiver) const {
  if (receiver == kPromptReceiver) return !free_.empty();
  if (free_.size() <= reserve_) return false;
  const auto known = receivers_.find(receiver);
  if (known == receivers_.end() || known->second.held == 0) return true;
  return known->second.held <
         std::min(known->second.window, (free_.size() - reserve_) / kReceiverShare);
}

StagingBlock StagingPool::Take(ReceiverId receiver) {
  if (receiver != kPromptReceiver) {
    ++receivers_[receiver].held;
    Settle(receiver);
  }
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
      Receiver& holder = receivers_.find(receiver)->second;
      ++holder.window;
      if (--holder.held == 0) holder.window = Receiver().window;
      Settle(receiver);
    }
    if (prompt_.empty() && ready_.empty()) return;
  }
  Serve();
}

void StagingPool::Settle(ReceiverId id) {
  const auto it = receivers_.find(id);
  Receiver& receiver = it->second;
  const bool waits = !receiver.waiters.empty();
  std::optional<int64_t> ready;
  if (waits && receiver.held < receiver.window) ready = receiver.waiters.begin()->first;
  if (ready != receiver.ready) {
    if (receiver.ready.has_value()) ready_.erase({*receiver.ready, id});
    if (ready.has_value()) ready_.emplace(*ready, id);
    receiver.ready = ready;
  }
  if (waits != receiver.waits) {
    receiver.waits = waits;
    waiting_receivers_ += waits ? 1 : -1;
  }
  if (!waits && receiver.held == 0) receivers_.erase(it);
}

// Those passed over hold a block each, and the fewer blocks are free the more of them: so there are
// never more than the pool has blocks.
std::pair<ReceiverId, StagingPool::Waiter> StagingPool::NextServed() {
  if (!prompt_.empty()) {
    return {kPromptReceiver, std::move(prompt_.extract(prompt_.begin()).mapped())};
  }
  if (free_.size() <= reserve_) return {};
  for (const auto& [number, id] : ready_) {
    if (!MayTake(id)) continue;
    return {id, std::move(receivers_.find(id)->second.waiters.extract(number).mapped())};
  }
  return {};
}

void StagingPool::Serve() {
  if (IsActive(this)) return;
  ActivePool active{this, active_pools};
  active_pools = &active;
  while (true) {
    Waiter waiter;
    StagingBlock block;
    {
      MutexLock lock(mutex_);
      if (free_.empty()) break;
      ReceiverId receiver;
      std::tie(receiver, waiter) = NextServed();
      if (!waiter) break;
      block = Take(receiver);
    }
    waiter(std::move(block));
  }
  active_pools = active.outer;
}

size_t StagingPool::used_blocks() const {
  MutexLock lock(mutex_);
  return blocks_ - free_.size();
}

bool StagingPool::scarce() const {
  MutexLock lock(mutex_);
  return (!prompt_.empty() || waiting_receivers_ > 0) && free_.size() <= reserve_;
}

}  // namespace gemmd
