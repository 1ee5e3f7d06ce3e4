#include "gemm/catalogue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gemm/edit_distance.h"
#include "gemm/quote.h"
#include "kernels/core/families.h"

namespace gemm {
namespace {

using RowsFn = absl::Span<const Kernel> (*)();
constexpr RowsFn kTables[] = {
    HostRows,
#if GEMM_HAS_CUDA
    SimtRows,        SimtSlicedKRows, SimtSgemmRows,     SimtBlockRows,      SimtHgemmRows,
    WmmaStepRows,    WmmaStageRows,   WmmaLargeTileRows, WmmaTf32Rows,       MmaStageRows,
    MmaDsmemRows,    MmaX2Rows,       GroupedF16Rows,    GroupedBF16Rows,    GroupedE4M3Rows,
    GroupedE5M2Rows, HopperF16Rows,   HopperBF16Rows,    HopperF16Acc16Rows, HopperF32Rows,
    HopperTF32Rows,  HopperF32x3Rows, HopperE4M3Rows,    HopperE5M2Rows,     HopperS8Rows,
    CublasRows,      CublasLtRows,
#endif
};

// As many as a user can read at a glance.
constexpr size_t kSuggestions = 3;

std::vector<const Kernel*> CollectRows() {
  std::vector<const Kernel*> rows;
  for (const RowsFn table : kTables) {
    for (const Kernel& kernel : table()) rows.push_back(&kernel);
  }
  return rows;
}

std::vector<absl::string_view> CollectFamilies() {
  std::vector<absl::string_view> families;
  for (const Kernel* kernel : Catalogue()) {
    if (std::find(families.begin(), families.end(), kernel->family) == families.end()) {
      families.push_back(kernel->family);
    }
  }
  return families;
}

absl::StatusOr<size_t> ParamIndex(const Kernel& kernel, absl::string_view name) {
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    if (kernel.params[i].name == name) return i;
  }
  if (kernel.params.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", kernel.name, " has no launch parameters; got ", Quoted(name)));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "kernel ", kernel.name, " has no launch parameter ", Quoted(name), "; it has ",
      absl::StrJoin(kernel.params, ", ",
                    [](std::string* out, const ParamSpec& p) { absl::StrAppend(out, p.name); })));
}

}  // namespace

absl::Span<const Kernel* const> Catalogue() {
  static const auto* const rows = new std::vector<const Kernel*>(CollectRows());
  return *rows;
}

absl::Span<const absl::string_view> Families() {
  static const auto* const families = new std::vector<absl::string_view>(CollectFamilies());
  return *families;
}

absl::StatusOr<const Kernel*> FindKernel(absl::string_view name) {
  for (const Kernel* kernel : Catalogue()) {
    if (kernel->name == name) return kernel;
  }
  return absl::NotFoundError(absl::StrCat("no kernel is named ", Quoted(name), "; the nearest are ",
                                          absl::StrJoin(NearestNames(name, kSuggestions), ", ")));
}

std::vector<absl::string_view> NearestNames(absl::string_view name, size_t count) {
  // A longer name than any row's adds the same to every distance.
  constexpr size_t kLongest = 128;
  std::vector<std::pair<size_t, absl::string_view>> ranked;
  for (const Kernel* kernel : Catalogue()) {
    ranked.emplace_back(EditDistance(name.substr(0, kLongest), kernel->name), kernel->name);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  ranked.resize(std::min(count, ranked.size()));
  std::vector<absl::string_view> names;
  for (const auto& entry : ranked) names.push_back(entry.second);
  return names;
}

const Kernel* NearestKernel(const Kernel& kernel, absl::FunctionRef<bool(const Kernel&)> can) {
  const Kernel* relative = nullptr;
  size_t least = 0;
  const Kernel* ranked = nullptr;
  for (const Kernel* other : Catalogue()) {
    if (!can(*other)) continue;
    if (ranked == nullptr || other->auto_rank > ranked->auto_rank) ranked = other;
    if (other->family != kernel.family) continue;
    const size_t distance = EditDistance(kernel.name, other->name);
    if (relative == nullptr || distance < least) {
      relative = other;
      least = distance;
    }
  }
  return relative != nullptr ? relative : ranked;
}

bool MayBeChosen(const Kernel& kernel, const Types& types) {
  return kernel.deterministic && Takes(kernel, types);
}

absl::StatusOr<LaunchParams> ResolveParams(const Kernel& kernel,
                                           const std::map<std::string, int64_t>& values) {
  LaunchParams params{};
  for (size_t i = 0; i < kernel.params.size(); ++i) params[i] = kernel.params[i].default_value;
  for (const auto& [name, value] : values) {
    const absl::StatusOr<size_t> index = ParamIndex(kernel, name);
    if (!index.ok()) return index.status();
    const ParamSpec& spec = kernel.params[*index];
    if (value < spec.min || value > spec.max) {
      return absl::InvalidArgumentError(absl::StrCat("launch parameter ", name, " of kernel ",
                                                     kernel.name, " is ", value, "; it must be ",
                                                     spec.min, " to ", spec.max));
    }
    params[*index] = value;
  }
  return params;
}

}  // namespace gemm
