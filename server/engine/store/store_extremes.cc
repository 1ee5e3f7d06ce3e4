// The largest and the hottest matrices.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/store/store.h"

namespace gemmd {
namespace {

// The `most` ids with the highest values. Ids rather than matrices: a matrix may have to be
// destroyed without the store's lock.
class Highest {
 public:
  explicit Highest(size_t most) : most_(most) {}

  void Add(int64_t value, const std::string& id) {
    if (most_ == 0 || (heap_.size() == most_ && value <= heap_.front().first)) return;
    if (heap_.size() == most_) {
      std::pop_heap(heap_.begin(), heap_.end(), IsHigher);
      heap_.pop_back();
    }
    heap_.emplace_back(value, id);
    std::push_heap(heap_.begin(), heap_.end(), IsHigher);
  }

  // The highest first.
  const std::vector<std::pair<int64_t, std::string>>& Sort() {
    std::sort_heap(heap_.begin(), heap_.end(), IsHigher);
    return heap_;
  }

 private:
  static bool IsHigher(const std::pair<int64_t, std::string>& x,
                       const std::pair<int64_t, std::string>& y) {
    return x.first > y.first;
  }

  const size_t most_;
  std::vector<std::pair<int64_t, std::string>> heap_;  // the least in front
};

}  // namespace

MatrixExtremes MatrixStore::Extremes(size_t most) {
  Highest largest(most);
  Highest hottest(most);
  std::string last;
  for (bool more = true; more;) {
    MutexLock lock(mutex_);
    auto it = by_id_.upper_bound(last);
    for (int seen = 0; it != by_id_.end() && seen < kMostSeenForAPage; ++it, ++seen) {
      const ResidentMatrix& matrix = *it->second;
      largest.Add(static_cast<int64_t>(matrix.record.shape.dense_bytes()), it->first);
      if (matrix.uses > 0) hottest.Add(matrix.uses, it->first);
      last = it->first;
    }
    more = it != by_id_.end();
  }
  MatrixExtremes extremes;
  MutexLock lock(mutex_);
  const auto add = [this](Highest& from, std::vector<MatrixRecord>& to)
                       ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                         for (const auto& [value, id] : from.Sort()) {
                           const auto it = by_id_.find(id);
                           if (it != by_id_.end()) to.push_back(RecordOf(*it->second));
                         }
                       };
  add(largest, extremes.largest);
  add(hottest, extremes.hottest);
  return extremes;
}

}  // namespace gemmd
