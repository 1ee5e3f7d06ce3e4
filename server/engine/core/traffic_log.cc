#include "server/engine/core/traffic_log.h"

#include <algorithm>

namespace gemmd {
namespace {

// The least of so many is far from the top: one of the 100 longest of a full log is dropped with a
// probability of 1 in 10^8.
constexpr int kDrawn = 8;

}  // namespace

void TrafficLog::Add(const gemm::TunedProduct& product, double seconds) {
  if (std::max({product.m, product.n, product.k}) > kMaxTrafficDimension) return;
  MutexLock lock(mutex_);
  const auto [known, is_new] = places_.try_emplace(product, entries_.size());
  if (is_new && entries_.size() < kMaxTrafficEntries) {
    entries_.push_back({.product = product});
  } else if (is_new) {
    known->second = Draw();
    TrafficEntry& gone = entries_[known->second];
    places_.erase(gone.product);
    gone = {.product = product};
    ++dropped_;
  }
  TrafficEntry& entry = entries_[known->second];
  ++entry.count;
  entry.seconds += seconds;
}

size_t TrafficLog::Draw() {
  std::uniform_int_distribution<size_t> place(0, entries_.size() - 1);
  size_t least = place(random_);
  for (int i = 1; i < kDrawn; ++i) {
    const size_t other = place(random_);
    if (entries_[other].seconds < entries_[least].seconds) least = other;
  }
  return least;
}

std::vector<TrafficEntry> TrafficLog::Top(size_t limit) const {
  std::vector<TrafficEntry> entries;
  {
    MutexLock lock(mutex_);
    entries = entries_;
  }
  std::sort(entries.begin(), entries.end(), [](const TrafficEntry& x, const TrafficEntry& y) {
    return x.seconds != y.seconds ? x.seconds > y.seconds : x.product < y.product;
  });
  if (entries.size() > limit) entries.resize(limit);
  return entries;
}

void TrafficLog::Clear() {
  MutexLock lock(mutex_);
  entries_.clear();
  places_.clear();
}

Gauge TrafficLog::held() const {
  MutexLock lock(mutex_);
  return {static_cast<int64_t>(entries_.size()), kMaxTrafficEntries};
}

int64_t TrafficLog::dropped() const {
  MutexLock lock(mutex_);
  return dropped_;
}

}  // namespace gemmd
