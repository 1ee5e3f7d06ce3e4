// Metric families: samples that are made at a scrape, buckets, and metrics by index.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "prometheus/labels.h"
#include "prometheus/metric_family.h"

namespace gemmd {

prometheus::MetricFamily GaugeSamples(std::string name, std::string help);
prometheus::MetricFamily CounterSamples(std::string name, std::string help);

// Adds one sample to a family of either kind.
void AddSample(prometheus::MetricFamily& family, double value,
               const prometheus::Labels& labels = {});

// Bucket boundaries in seconds: 5 us to 10 s in steps of 1, 2.5 and 5. A small product on resident
// operands takes tens of microseconds, a large one over a slow link seconds.
const std::vector<double>& DurationBuckets();

// Bucket boundaries in TFLOPS (1e12 floating-point operations per second): 0.001 to 50 in steps of
// 1, 2.5 and 5, for hosts, CUDA cores and small shapes; then evenly spaced up to 2000, for tensor
// cores.
const std::vector<double>& TflopsBuckets();

// The metrics of one family, found by index without a lock. prometheus::Family::Add hashes labels
// under a lock. This class does so once for each combination of labels and caches the metric. A
// metric is created at its first use, so combinations that never occur are not exported.
// Thread-safe.
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
