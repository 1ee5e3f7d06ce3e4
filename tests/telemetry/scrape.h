// Reads the Prometheus text format, strictly.
#pragma once

#include <map>
#include <set>
#include <string>

namespace gemmd {

struct ParsedScrape {
  // By series as written, labels in order of name: gemmd_x{a="1",b="2"}.
  std::map<std::string, double> samples;
  std::map<std::string, std::string> types;  // family -> "counter"
  std::map<std::string, std::string> helps;

  // The sample, or a failed expectation and NaN.
  double at(const std::string& series) const;
  // The values that `label` takes in the series of `name`.
  std::set<std::string> LabelValues(const std::string& name, const std::string& label) const;
};

// Fails the test at a malformed line, a series given twice, or a sample without
// TYPE and HELP before it.
ParsedScrape ParseScrape(const std::string& text);

}  // namespace gemmd
