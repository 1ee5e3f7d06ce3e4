// The process's start, memory, processor time and open files, read from /proc at each
// scrape.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace gemmd {

// The process_* families that Prometheus client libraries have in common.
// Thread-safe.
class ProcessGauges : public prometheus::Collectable {
 public:
  explicit ProcessGauges(absl::Time started) : started_(started) {}
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const absl::Time started_;
};

}  // namespace gemmd
