// A bounded map that drops the least recently used entry.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <utility>

namespace gemm {

// Not thread-safe. `Key` is ordered by <.
template <class Key, class Value>
class LruCache {
 public:
  // `capacity` is at least 1.
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  // The value of `key`, now the most recently used, or null. Valid until the
  // next Insert.
  Value* Find(const Key& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }

  // Adds a new key. Drops the least recently used one if there is no room.
  Value& Insert(const Key& key, Value value) {
    if (entries_.size() == capacity_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(key, std::move(value));
    index_.emplace(key, entries_.begin());
    return entries_.front().second;
  }

  size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<Key, Value>>;

  const size_t capacity_;
  Entries entries_;  // most recently used first
  std::map<Key, typename Entries::iterator> index_;
};

}  // namespace gemm
