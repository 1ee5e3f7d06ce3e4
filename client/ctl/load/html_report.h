// A load test as one HTML file, with its plots inside and nothing from outside.
#pragma once

#include <string>
#include <vector>

#include "client/ctl/load/load_report.h"
#include "client/ctl/load/verdicts.h"

namespace gemmd::ctl {

struct HtmlReport {
  std::string command_line;
  std::string server;                              // its address and version
  std::string tables;                              // as printed for people
  const LoadResult* result = nullptr;              // of one test
  const std::vector<SweepPoint>* sweep = nullptr;  // or of several
};

// One test: latency and requests per second over time, and the phases of each shape and kernel. A
// sweep: the same over concurrency.
std::string ToHtml(const HtmlReport& report);

}  // namespace gemmd::ctl
