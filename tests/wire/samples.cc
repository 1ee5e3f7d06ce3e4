#include "tests/wire/samples.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

namespace gemmd::wire {

double Samples::Percentile(double fraction) const {
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const auto rank = static_cast<size_t>(std::ceil(fraction * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

double Samples::Median() const { return Percentile(0.5); }

nlohmann::json Samples::ToJson(double scale) const {
  return {{"n", count()},
          {"p50", Median() * scale},
          {"min", Percentile(0) * scale},
          {"p90", Percentile(0.9) * scale},
          {"p99", Percentile(0.99) * scale},
          {"max", Percentile(1) * scale}};
}

void Print(const std::vector<Verdict>& verdicts) {
  for (const Verdict& v : verdicts) {
    std::printf("%-52s %9.2f %-5s (at %s %g)  %s\n", v.name.c_str(), v.value, v.unit.c_str(),
                v.at_most ? "most" : "least", v.bound, v.held() ? "held" : "MISSED");
  }
}

nlohmann::json ToJson(const std::vector<Verdict>& verdicts) {
  nlohmann::json list = nlohmann::json::array();
  for (const Verdict& v : verdicts) {
    list.push_back({{"name", v.name},
                    {"value", v.value},
                    {"unit", v.unit},
                    {v.at_most ? "at_most" : "at_least", v.bound},
                    {"held", v.held()}});
  }
  return list;
}

bool WriteJson(const std::string& path, const nlohmann::json& report) {
  if (path.empty()) return true;
  std::ofstream file(path);
  file << report.dump(1) << "\n";
  file.close();
  if (!file) std::fprintf(stderr, "--json: cannot write %s\n", path.c_str());
  return static_cast<bool>(file);
}

}  // namespace gemmd::wire
