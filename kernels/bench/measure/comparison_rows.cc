#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/bench/measure/comparison.h"
#include "kernels/bench/result/statistics.h"

namespace gemm::bench {

void Comparison::NoteMissingSamples() {
  for (TimedCandidate& candidate : candidates_) {
    const auto taken = static_cast<int>(candidate.samples.size());
    if (candidate.out || taken >= candidate.most_samples) continue;
    if (taken == 0) candidate.samples = {candidate.expected_seconds};
    AddNote(candidate, absl::StrCat(std::max(taken, 1), " of ", rules_.iterations,
                                    " samples: the time budget ended"));
  }
}

void Comparison::AddNote(TimedCandidate& candidate, absl::string_view note) {
  absl::StrAppend(&candidate.note, candidate.note.empty() ? "" : "; ", note);
}

double Comparison::TflopsOf(const TimedCandidate& candidate) const {
  return Flops(shape_) / Median(candidate.samples) * 1e-12;
}

std::optional<double> Comparison::TflopsOf(absl::string_view name) const {
  for (const TimedCandidate& candidate : candidates_) {
    if (candidate.name == name && !candidate.out) return TflopsOf(candidate);
  }
  return std::nullopt;
}

std::optional<double> Comparison::BaselineJoules() const {
  std::optional<double> fewest;
  for (const TimedCandidate& candidate : candidates_) {
    if (candidate.name != vendor_ && candidate.name != kTunedVendor) continue;
    if (candidate.joules && (!fewest || *candidate.joules < *fewest)) fewest = candidate.joules;
  }
  return fewest;
}

Row Comparison::MakeRow(const TimedCandidate& candidate) const {
  Row row = {.shape = shape_,
             .types = problem_.types,
             .layout = {problem_.trans_a, problem_.trans_b},
             .kernel = candidate.name,
             .family = candidate.family,
             .baseline = candidate.baseline,
             .measured = !candidate.out,
             .note = candidate.note};
  if (candidate.spec.kernel != nullptr) row.params = ParamsText(candidate.spec);
  if (!row.measured) return row;
  row.seconds = Median(candidate.samples);
  const auto [fastest, slowest] =
      std::minmax_element(candidate.samples.begin(), candidate.samples.end());
  row.fastest_seconds = *fastest;
  row.slowest_seconds = *slowest;
  row.iterations = static_cast<int>(candidate.samples.size());
  row.tflops = TflopsOf(candidate);
  row.joules = candidate.joules;
  row.error = candidate.error;
  return row;
}

std::vector<Row> Comparison::MakeRows() const {
  const std::optional<double> vendor = TflopsOf(vendor_);
  const std::optional<double> tuned = TflopsOf(kTunedVendor);
  const std::optional<double> baseline_joules = BaselineJoules();
  double best = 0;
  std::vector<Row> rows;
  for (const TimedCandidate& candidate : candidates_) {
    Row row = MakeRow(candidate);
    if (row.measured) {
      if (vendor) row.of_vendor = row.tflops / *vendor;
      if (tuned) row.of_tuned_vendor = row.tflops / *tuned;
      if (row.joules && baseline_joules) row.joules_of_baseline = *row.joules / *baseline_joules;
      if (row.tflops > best) {
        row.gain = best == 0 ? 0 : row.tflops / best - 1;
        best = row.tflops;
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace gemm::bench
