// Metric families that are filled when they are scraped.
#pragma once

#include <string>

#include "prometheus/labels.h"
#include "prometheus/metric_family.h"

namespace gemmd {

prometheus::MetricFamily GaugeSamples(std::string name, std::string help);
prometheus::MetricFamily CounterSamples(std::string name, std::string help);

// Adds one sample to a family of either kind.
void AddSample(prometheus::MetricFamily& family, double value,
               const prometheus::Labels& labels = {});

}  // namespace gemmd
