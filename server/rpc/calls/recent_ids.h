// Remembers the most recent ids, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>

namespace gemmd {

class RecentIds {
 public:
  explicit RecentIds(size_t capacity) : capacity_(capacity) {}

  // Forgets the oldest id if there is no room.
  void Add(uint64_t id) {
    if (!ids_.insert(id).second) return;
    order_.push_back(id);
    if (order_.size() <= capacity_) return;
    ids_.erase(order_.front());
    order_.pop_front();
  }
  bool Contains(uint64_t id) const { return ids_.count(id) > 0; }

 private:
  const size_t capacity_;
  std::unordered_set<uint64_t> ids_;
  std::deque<uint64_t> order_;
};

}  // namespace gemmd
