// The baseline "cublaslt_best": the fastest of all that is measured of the vendor's libraries.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/bench/measure/comparison.h"
#include "kernels/bench/result/statistics.h"

namespace gemm::bench {
namespace {

bool IsOfLibrary(absl::string_view family) { return family == "cublas" || family == "cublaslt"; }

}  // namespace

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
