// The engine's bounds and how much of each is used, read at each scrape.
#pragma once

#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/base/mutex.h"
#include "server/engine/bounds/stats.h"
#include "server/engine/engine.h"

namespace gemmd {

// Samples of `stats`. A bounded quantity X is exported as gemmd_X beside
// gemmd_X_limit.
std::vector<prometheus::MetricFamily> Samples(const EngineStats& stats);

// Thread-safe.
class EngineGauges : public prometheus::Collectable {
 public:
  // From now on scrapes show `engine`, which must live until Detach.
  void Attach(const Engine* engine);
  // When this returns, no scrape uses the engine any more.
  void Detach() { Attach(nullptr); }

  // Empty while no engine is attached.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  mutable Mutex mutex_;  // held while the engine is asked
  const Engine* engine_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace gemmd
