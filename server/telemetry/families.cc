#include "server/telemetry/families.h"

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

const std::vector<double>& DurationBuckets() {
  static const auto* buckets = new std::vector<double>{5e-6,                //
                                                       1e-5, 2.5e-5, 5e-5,  //
                                                       1e-4, 2.5e-4, 5e-4,  //
                                                       1e-3, 2.5e-3, 5e-3,  //
                                                       0.01, 0.025,  0.05,  //
                                                       0.1,  0.25,   0.5,   //
                                                       1,    2.5,    5,    10};
  return *buckets;
}

const std::vector<double>& TflopsBuckets() {
  static const auto* buckets =
      new std::vector<double>{0.001, 0.0025, 0.005,  //
                              0.01,  0.025,  0.05,   //
                              0.1,   0.25,   0.5,    //
                              1,     2.5,    5,      //
                              10,    25,     50,     //
                              100,   200,    300,   400, 500, 600, 700, 800, 1000, 1500, 2000};
  return *buckets;
}

}  // namespace gemmd
