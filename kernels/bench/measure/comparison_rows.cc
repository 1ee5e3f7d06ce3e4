#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/bench/measure/comparison.h"
#include "kernels/bench/result/summary.h"

namespace gemm::bench {
namespace {

bool IsOfLibrary(absl::string_view family) { return family == "cublas" || family == "cublaslt"; }

}  // namespace

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

// The baseline "cublaslt_best": the fastest of all that is measured of the vendor's libraries.
absl::Status Comparison::AddAlgorithms() {
  if (rules_.vendor_algorithms == 0 || hooks_.now() >= deadlines_.hard) return absl::OkStatus();
  if (absl::Status status = hooks_.step("asking for algorithms"); !status.ok()) return status;
  std::vector<LaunchFn> algorithms =
      backend_.VendorAlgorithms(problem_, sets_.At(0), rules_.vendor_algorithms);
  for (size_t i = 0; i < algorithms.size(); ++i) {
    candidates_.push_back({.name = std::string(kTunedVendor),
                           .family = "cublaslt",
                           .baseline = true,
                           .launch = std::move(algorithms[i]),
                           .note = absl::StrCat("algorithm ", i + 1, " of ", algorithms.size()),
                           .most_samples = rules_.iterations});
  }
  return absl::OkStatus();
}

void Comparison::KeepFastestOfLibrary() {
  const auto first = std::find_if(candidates_.begin(), candidates_.end(),
                                  [](const auto& x) { return x.name == kTunedVendor; });
  if (first == candidates_.end()) return;
  // Algorithms stand last, and are asked first: of two that are as fast they are named.
  auto best = first;
  const auto ask = [&best](auto candidate) {
    if (candidate->out || !IsOfLibrary(candidate->family)) return;
    if (best->out || Median(candidate->samples) < Median(best->samples)) best = candidate;
  };
  for (auto candidate = first; candidate != candidates_.end(); ++candidate) ask(candidate);
  for (auto candidate = candidates_.begin(); candidate != first; ++candidate) ask(candidate);
  TimedCandidate fastest = *best;
  if (fastest.spec.kernel != nullptr) {
    const std::string params = ParamsText(fastest.spec);
    const std::string note =
        std::exchange(fastest.note, absl::StrCat(fastest.name, params.empty() ? "" : " ", params));
    if (!note.empty()) AddNote(fastest, note);
    fastest.name = std::string(kTunedVendor);
    fastest.family = "cublaslt";
    fastest.baseline = true;
    fastest.spec.kernel = nullptr;
  }
  candidates_.erase(first, candidates_.end());
  candidates_.push_back(std::move(fastest));
}

}  // namespace gemm::bench
