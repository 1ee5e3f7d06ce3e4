// Repeated measurements of one thing, and the report of many.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace gemmd::wire {

class Samples {
 public:
  void Add(double value) { values_.push_back(value); }
  size_t count() const { return values_.size(); }
  // `fraction` 0 to 1; the nearest value at or above. There must be a sample.
  double Percentile(double fraction) const;
  double Median() const;

  // n, p50, min, p90, p99, max, each times `scale`.
  nlohmann::json ToJson(double scale) const;

 private:
  std::vector<double> values_;
};

// A figure with the bound that it is held against.
struct Verdict {
  std::string name;
  double value = 0;
  std::string unit;
  bool at_most = true;  // else: at least
  double bound = 0;

  bool held() const { return at_most ? value <= bound : value >= bound; }
};

// Lines "name  value unit  (at most bound unit)  held|missed".
void Print(const std::vector<Verdict>& verdicts);
nlohmann::json ToJson(const std::vector<Verdict>& verdicts);

// Writes `report` to `path`; nothing where the path is empty. False where the
// file cannot be written.
bool WriteJson(const std::string& path, const nlohmann::json& report);

}  // namespace gemmd::wire
