// The connections of each listener, read at each scrape.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/base/mutex.h"
#include "server/net/acceptor.h"

namespace gemmd {

// Thread-safe.
class ConnectionGauges : public prometheus::Collectable {
 public:
  using Read = std::function<ConnectionStats()>;

  // From now on scrapes show the result of `read`, labelled `listener`.
  void Attach(std::string listener, Read read);
  // When this returns, no scrape reads any more.
  void Detach();

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  mutable Mutex mutex_;  // held while they are read
  std::vector<std::pair<std::string, Read>> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
