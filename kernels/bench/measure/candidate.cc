#include "kernels/bench/measure/candidate.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gemm/catalogue.h"
#include "gemm/quote.h"

namespace gemm::bench {
namespace {

// The layout for which the kernel needs the least scratch memory: operands in any other
// are transposed there.
Layout NativeLayout(const Kernel& kernel, const Types& types) {
  if (kernel.workspace_bytes == nullptr) return {};
  const auto scratch = [&](const Layout& layout) {
    constexpr int64_t kDim = 256;
    return kernel.workspace_bytes({.m = kDim,
                                   .n = kDim,
                                   .k = kDim,
                                   .types = types,
                                   .trans_a = layout.trans_a,
                                   .trans_b = layout.trans_b});
  };
  return *std::min_element(kLayouts.begin(), kLayouts.end(), [&](const Layout& x, const Layout& y) {
    return scratch(x) < scratch(y);
  });
}

bool Contains(const std::vector<std::string>& list, absl::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool IsPattern(absl::string_view word) { return word.find_first_of("*?") != word.npos; }

// Checks that every name and pattern of the selection fits something.
absl::Status CheckWords(const Selection& selection) {
  for (const std::string& family : selection.families) {
    const auto families = Families();
    if (std::find(families.begin(), families.end(), family) == families.end()) {
      return absl::NotFoundError(absl::StrCat("no family is named ", Quoted(family), "; there are ",
                                              absl::StrJoin(families, ", ")));
    }
  }
  for (const std::string& name : selection.kernels) {
    if (!IsPattern(name)) {
      if (const auto found = FindKernel(name); !found.ok()) return found.status();
      continue;
    }
    const auto rows = Catalogue();
    if (std::none_of(rows.begin(), rows.end(),
                     [&](const Kernel* row) { return GlobMatches(name, row->name); })) {
      return absl::NotFoundError(absl::StrCat("no kernel fits the pattern ", Quoted(name)));
    }
  }
  return absl::OkStatus();
}

bool IsWanted(const Selection& selection, const Kernel& kernel) {
  if (selection.with_scales && !kernel.block_scales) return false;
  if (!selection.families.empty() && !Contains(selection.families, std::string(kernel.family))) {
    return false;
  }
  return selection.kernels.empty() ||
         std::any_of(selection.kernels.begin(), selection.kernels.end(),
                     [&](const std::string& name) { return GlobMatches(name, kernel.name); });
}

std::vector<Types> WantedTypes(const Selection& selection, const Kernel& kernel) {
  if (selection.types.empty() && !selection.with_scales) return {kernel.types.front()};
  std::vector<Types> wanted;
  for (const Types& types : kernel.types) {
    if (selection.with_scales && !(IsFp8(types.a) && IsFp8(types.b))) continue;
    if (selection.types.empty()) return {types};
    if (std::any_of(selection.types.begin(), selection.types.end(),
                    [&](const TypesPattern& pattern) { return pattern.Matches(types); })) {
      wanted.push_back(types);
    }
  }
  return wanted;
}

bool IsNamed(const Selection& selection, const Kernel& kernel) {
  return Contains(selection.kernels, std::string(kernel.name));
}

// Checks that patterns of types leave room for block scales, which are of fp8 operands.
absl::Status CheckScaledTypes(const Selection& selection) {
  if (!selection.with_scales) return absl::OkStatus();
  for (const TypesPattern& pattern : selection.types) {
    for (const std::optional<DType>& type : {pattern.a, pattern.b}) {
      if (!type.has_value() || IsFp8(*type)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "operands with block scales must be e4m3 or e5m2, but --types asks for ", Name(*type)));
    }
  }
  return absl::OkStatus();
}

// Checks that some candidate has each parameter of the selection.
absl::Status CheckParams(const Selection& selection, const std::vector<Candidate>& candidates) {
  std::set<absl::string_view> names;
  for (const Candidate& candidate : candidates) {
    for (const ParamSpec& spec : candidate.kernel->params) names.insert(spec.name);
  }
  for (const auto& [name, values] : selection.params) {
    if (names.count(name) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("no kernel of the selection has a launch parameter ", Quoted(name),
                     "; they have ", names.empty() ? "none" : absl::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
}

// The error where no kernel has both a name and a family of the selection.
absl::Status NothingInCommon(const Selection& selection) {
  std::set<absl::string_view> families;
  for (const Kernel* kernel : Catalogue()) {
    if (IsWanted({.kernels = selection.kernels}, *kernel)) families.insert(kernel->family);
  }
  return absl::NotFoundError(
      absl::StrCat("no kernel has both a name and a family that are asked for; those of the names "
                   "are of ",
                   absl::StrJoin(families, ", ")));
}

// Every combination of the wanted values of the parameters that the kernel has.
absl::StatusOr<std::vector<LaunchParams>> WantedParams(const Selection& selection,
                                                       const Kernel& kernel) {
  std::vector<std::map<std::string, int64_t>> combinations(1);
  for (const ParamSpec& spec : kernel.params) {
    const auto wanted = selection.params.find(std::string(spec.name));
    if (wanted == selection.params.end()) continue;
    std::vector<std::map<std::string, int64_t>> longer;
    for (const auto& combination : combinations) {
      for (const int64_t value : wanted->second) {
        longer.push_back(combination);
        longer.back()[wanted->first] = value;
      }
    }
    combinations = std::move(longer);
  }
  std::vector<LaunchParams> resolved;
  for (const auto& combination : combinations) {
    const absl::StatusOr<LaunchParams> params = ResolveParams(kernel, combination);
    if (!params.ok()) return params.status();
    resolved.push_back(*params);
  }
  return resolved;
}

}  // namespace

absl::StatusOr<std::vector<const Kernel*>> SelectKernels(const Selection& selection) {
  if (const absl::Status status = CheckWords(selection); !status.ok()) return status;
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : Catalogue()) {
    if (IsWanted(selection, *kernel)) kernels.push_back(kernel);
  }
  if (kernels.empty()) return NothingInCommon(selection);
  return kernels;
}

absl::StatusOr<std::vector<Candidate>> SelectCandidates(const Selection& selection,
                                                        const DeviceCaps& device) {
  if (absl::Status status = CheckScaledTypes(selection); !status.ok()) return status;
  const absl::StatusOr<std::vector<const Kernel*>> kernels = SelectKernels(selection);
  if (!kernels.ok()) return kernels.status();
  std::vector<Candidate> candidates;
  absl::Status why_not;
  for (const Kernel* kernel : *kernels) {
    const absl::Status runs = CheckDevice(*kernel, device);
    if (!runs.ok() && IsNamed(selection, *kernel)) return runs;
    const std::vector<Types> wanted = WantedTypes(selection, *kernel);
    if (wanted.empty()) continue;
    if (!runs.ok()) {
      why_not.Update(runs);
      continue;
    }
    const absl::StatusOr<std::vector<LaunchParams>> params = WantedParams(selection, *kernel);
    if (!params.ok()) return params.status();
    for (const Types& types : wanted) {
      const Layout layout = selection.layout ? *selection.layout : NativeLayout(*kernel, types);
      for (const LaunchParams& values : *params) {
        candidates.push_back(
            {.kernel = kernel, .types = types, .layout = layout, .params = values});
      }
    }
  }
  if (!candidates.empty()) {
    if (absl::Status params = CheckParams(selection, candidates); !params.ok()) return params;
    return candidates;
  }
  if (!why_not.ok()) return why_not;
  return absl::NotFoundError("no kernel of the selection takes the types asked for");
}

const Kernel* FindBaseline(const Types& types, const DeviceCaps& device) {
  const std::vector<absl::string_view> families =
      device.target == Target::kCuda ? std::vector<absl::string_view>{"cublas", "cublaslt"}
                                     : std::vector<absl::string_view>{"host"};
  for (const absl::string_view family : families) {
    for (const Kernel* kernel : Catalogue()) {
      if (kernel->family == family && CheckDevice(*kernel, device).ok() &&
          CheckTypes(*kernel, types).ok()) {
        return kernel;
      }
    }
  }
  return nullptr;
}

std::string ParamsText(const Candidate& candidate) {
  std::string text;
  for (size_t i = 0; i < candidate.kernel->params.size(); ++i) {
    const int64_t value = candidate.params[i];
    absl::StrAppend(&text, i == 0 ? "" : " ", candidate.kernel->params[i].name, "=",
                    value == kOwnChoice ? "own" : absl::StrCat(value));
  }
  return text;
}

bool GlobMatches(absl::string_view pattern, absl::string_view name) {
  size_t p = 0, n = 0;
  size_t star = pattern.npos, resumed = 0;  // the last * and where it goes on from
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resumed = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++resumed;
    } else {
      return false;
    }
  }
  return pattern.substr(p).find_first_not_of('*') == pattern.npos;
}

}  // namespace gemm::bench
