#include "server/telemetry/connection_gauges.h"

#include "server/telemetry/samples.h"

namespace gemmd {

void ConnectionGauges::Attach(std::string listener, Read read) {
  MutexLock lock(mutex_);
  listeners_.emplace_back(std::move(listener), std::move(read));
}

void ConnectionGauges::Detach() {
  MutexLock lock(mutex_);
  listeners_.clear();
}

std::vector<prometheus::MetricFamily> ConnectionGauges::Collect() const {
  prometheus::MetricFamily open = GaugeSamples("gemmd_connections", "Open connections.");
  prometheus::MetricFamily limit = GaugeSamples(
      "gemmd_connections_limit", "Limit: open connections (--max-connections, for gRPC).");
  prometheus::MetricFamily accepted =
      CounterSamples("gemmd_connections_accepted_total", "Connections accepted.");
  prometheus::MetricFamily refused =
      CounterSamples("gemmd_connections_refused_total",
                     "Connections closed at once because the limit was reached.");
  prometheus::MetricFamily failures =
      CounterSamples("gemmd_accept_failures_total",
                     "Failures of accept, as when descriptors run out; accept is retried.");
  MutexLock lock(mutex_);
  for (const auto& [listener, read] : listeners_) {
    const ConnectionStats stats = read();
    const prometheus::Labels labels = {{"listener", listener}};
    AddSample(open, static_cast<double>(stats.open), labels);
    AddSample(limit, static_cast<double>(stats.limit), labels);
    AddSample(accepted, static_cast<double>(stats.accepted), labels);
    AddSample(refused, static_cast<double>(stats.refused), labels);
    AddSample(failures, static_cast<double>(stats.failures), labels);
  }
  if (listeners_.empty()) return {};
  return {std::move(open), std::move(limit), std::move(accepted), std::move(refused),
          std::move(failures)};
}

}  // namespace gemmd
