#include "kernels/bench/measure/auto_rows.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemm/catalogue.h"
#include "kernels/bench/measure/candidate.h"
#include "kernels/bench/result/auto_share.h"

namespace gemm::bench {

const Kernel* AutoRows::Choose(const Problem& problem) const {
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : Catalogue()) {
    if (RunsOn(*kernel, device_) && MayBeChosen(*kernel, problem.types)) kernels.push_back(kernel);
  }
  if (kernels.empty()) return nullptr;
  const std::vector<double> seconds =
      estimates_.estimates == nullptr
          ? FormulaSeconds(problem, kernels)
          : estimates_.estimates->Seconds(problem, kernels, estimates_.device);
  const std::optional<size_t> fastest =
      FastestOf(problem, kernels, seconds, std::numeric_limits<size_t>::max());
  if (fastest) return kernels[*fastest];
  return *std::max_element(kernels.begin(), kernels.end(), [](const Kernel* x, const Kernel* y) {
    return x->auto_rank < y->auto_rank;
  });
}

Row AutoRows::For(absl::Span<const Row> rows) const {
  const Row& any = rows.front();
  Row row{.shape = any.shape,
          .types = any.types,
          .layout = any.layout,
          .kernel = std::string(kAuto),
          .family = std::string(kAuto)};
  const Kernel* const kernel = Choose({.m = any.shape.m,
                                       .n = any.shape.n,
                                       .k = any.shape.k,
                                       .types = any.types,
                                       .trans_a = any.layout.trans_a,
                                       .trans_b = any.layout.trans_b});
  if (kernel == nullptr) {
    row.note = "no kernel may be chosen for these types";
    return row;
  }
  const std::string params = ParamsText({.kernel = kernel, .params = *ResolveParams(*kernel, {})});
  const auto taken = std::find_if(rows.begin(), rows.end(), [&](const Row& one) {
    return one.measured && one.kernel == kernel->name && one.params == params;
  });
  if (taken == rows.end()) {
    row.note = absl::StrCat("takes ", kernel->name, ", which was not measured");
    return row;
  }
  row = *taken;
  row.kernel = row.family = std::string(kAuto);
  row.params.clear();
  row.baseline = false;
  row.gain.reset();
  row.note = absl::StrCat("takes ", kernel->name);
  return row;
}

}  // namespace gemm::bench
