// The metrics of one family, found by index without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace gemmd {

// prometheus::Family::Add hashes labels under a lock. This class does so once for each
// combination of labels and caches the metric. A metric is created at its first use, so
// combinations that never occur are not exported. Thread-safe.
template <typename Metric>
class IndexedFamily {
 public:
  // Creates the metric at an index, or finds it: two threads may call this at once.
  using Make = std::function<Metric&(size_t index)>;

  IndexedFamily(size_t size, Make make) : make_(std::move(make)), metrics_(size) {}

  // `index` is below the size.
  Metric& operator[](size_t index) {
    Metric* metric = metrics_[index].load(std::memory_order_acquire);
    if (metric == nullptr) {
      metric = &make_(index);
      metrics_[index].store(metric, std::memory_order_release);
    }
    return *metric;
  }

 private:
  const Make make_;
  std::vector<std::atomic<Metric*>> metrics_;
};

}  // namespace gemmd
