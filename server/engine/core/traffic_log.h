// The products that are worth tuning, with their counts and times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "gemm/tuning.h"
#include "server/base/mutex.h"
#include "server/engine/bounds/stats.h"
#include "server/engine/core/report.h"

namespace gemmd {

inline constexpr size_t kMaxTrafficEntries = 1024;
// No benchmark takes a larger product.
inline constexpr int64_t kMaxTrafficDimension = int64_t{1} << 24;

// Thread-safe. Takes a fraction of a microsecond for a product.
class TrafficLog {
 public:
  // One product more. If the log is full, a few kinds of products are drawn at random. A new kind
  // takes the place of the one that took the least time. Larger ones than a benchmark takes are
  // left out.
  void Add(const gemm::TunedProduct& product, double seconds);
  // The `limit` that took the most time, the most first.
  std::vector<TrafficEntry> Top(size_t limit) const;
  // Forgets everything.
  void Clear();

  Gauge held() const;
  // Entries that made room for others, since the start.
  int64_t dropped() const;

 private:
  struct Hash {
    size_t operator()(const gemm::TunedProduct& p) const {
      return absl::HashOf(p.a, p.b, p.d, p.compute, p.trans_a, p.trans_b, p.epilogue, p.m, p.n,
                          p.k);
    }
  };

  // The place of the entry that is to go.
  size_t Draw() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::vector<TrafficEntry> entries_ ABSL_GUARDED_BY(mutex_);
  // The place of each in `entries_`.
  absl::flat_hash_map<gemm::TunedProduct, size_t, Hash> places_ ABSL_GUARDED_BY(mutex_);
  std::minstd_rand random_ ABSL_GUARDED_BY(mutex_);
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gemmd
