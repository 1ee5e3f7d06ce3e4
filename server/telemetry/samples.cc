#include "server/telemetry/samples.h"

#include <utility>

#include "prometheus/client_metric.h"
#include "prometheus/metric_type.h"

namespace gemmd {

prometheus::MetricFamily GaugeSamples(std::string name, std::string help) {
  return {std::move(name), std::move(help), prometheus::MetricType::Gauge, {}};
}

prometheus::MetricFamily CounterSamples(std::string name, std::string help) {
  return {std::move(name), std::move(help), prometheus::MetricType::Counter, {}};
}

void AddSample(prometheus::MetricFamily& family, double value, const prometheus::Labels& labels) {
  prometheus::ClientMetric& sample = family.metric.emplace_back();
  for (const auto& [name, label] : labels) sample.label.push_back({name, label});
  if (family.type == prometheus::MetricType::Counter) {
    sample.counter.value = value;
  } else {
    sample.gauge.value = value;
  }
}

}  // namespace gemmd
