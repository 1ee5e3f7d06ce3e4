#include "server/engine/job/dispatcher.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gemm/catalogue.h"
#include "gemm/quote.h"
#include "server/engine/core/form.h"

namespace gemmd {
namespace {

bool SameStorage(const gemm::Types& x, const gemm::Types& y) {
  return x.a == y.a && x.b == y.b && x.d == y.d;
}

std::string Describe(const gemm::Types& types) {
  return absl::StrCat("a=", gemm::Name(types.a), ", b=", gemm::Name(types.b),
                      ", result=", gemm::Name(types.d), ", compute=", gemm::Name(types.compute));
}

// No kernel of the catalogue, or of the family, takes the types.
absl::Status NoKernelFor(const gemm::Types& types, absl::string_view family) {
  const std::string who = family.empty()
                              ? "no kernel of this server"
                              : absl::StrCat("no kernel of family ", gemm::Quoted(family));
  return absl::InvalidArgumentError(absl::StrCat(
      who, " takes ", Describe(types),
      "; convert an operand (astype in Python), or ask for another type of the result; gemmctl "
      "kernels shows what is taken"));
}

// Kernels of the catalogue, or of the family, take the types here, but none takes the form.
absl::Status NoKernelOfForm(const gemm::Problem& problem, absl::string_view family) {
  const Form form = FormOf(problem);
  const FormRules& rules = RulesOf(form);
  return absl::InvalidArgumentError(
      absl::StrCat(Given(form, ProductCount(problem)), ", but no kernel of this device",
                   family.empty() ? "" : absl::StrCat(" of family ", gemm::Quoted(family)),
                   " takes ", rules.name, " of ", Describe(problem.types),
                   "; ListKernels gives those that do (", rules.kernels, ")"));
}

// Whether `kernel` takes the form: a batch, or block scales.
absl::Status CheckForm(const gemm::Kernel& kernel, const gemm::Problem& problem) {
  absl::Status status = gemm::CheckBatch(kernel, problem.batch);
  if (status.ok()) status = gemm::CheckBlockScales(kernel, problem);
  return status;
}

// The types the kernel is to run with: the ones asked for, or, where the caller
// left the compute mode open, the kernel's own mode for that storage.
std::optional<gemm::Types> TypesFor(const gemm::Kernel& kernel, const gemm::Types& types,
                                    bool compute_given) {
  const gemm::Types* other = nullptr;
  for (const gemm::Types& taken : kernel.types) {
    if (taken == types) return taken;
    if (!compute_given && other == nullptr && SameStorage(taken, types)) other = &taken;
  }
  if (other == nullptr) return std::nullopt;
  return *other;
}

KernelPick PickOf(const gemm::Kernel& kernel, const gemm::LaunchParams& params,
                  gemm::Compute compute) {
  KernelPick pick;
  pick.kernel = &kernel;
  pick.params = params;
  pick.named_params = NamedParams(kernel, params);
  pick.compute = compute;
  return pick;
}

absl::StatusOr<KernelPick> Finish(const gemm::Kernel& kernel, const gemm::Types& types,
                                  const KernelRequest& request, ChoiceRule rule,
                                  std::string reason) {
  absl::StatusOr<gemm::LaunchParams> params = gemm::ResolveParams(kernel, request.params);
  if (!params.ok()) return params.status();
  KernelPick pick = PickOf(kernel, *params, types.compute);
  pick.rule = rule;
  pick.reason = std::move(reason);
  return pick;
}

// `why` the kernel cannot serve the request, with the nearest kernel that can.
absl::Status WithNearest(const absl::Status& why, const gemm::Kernel& kernel,
                         const KernelRequest& request, const gemm::Problem& problem,
                         bool compute_given, const gemm::DeviceCaps& device) {
  const gemm::Kernel* const nearest = gemm::NearestKernel(kernel, [&](const gemm::Kernel& other) {
    return gemm::RunsOn(other, device) &&
           TypesFor(other, problem.types, compute_given).has_value() &&
           CheckForm(other, problem).ok() && gemm::CheckSize(other, problem).ok() &&
           gemm::ResolveParams(other, request.params).ok();
  });
  if (nearest == nullptr) return why;
  return absl::Status(
      why.code(), absl::StrCat(why.message(), "; the nearest kernel that can is ", nearest->name));
}

absl::StatusOr<KernelPick> PickByName(const KernelRequest& request, const gemm::Problem& problem,
                                      bool compute_given, const gemm::DeviceCaps& device) {
  const absl::StatusOr<const gemm::Kernel*> found = gemm::FindKernel(request.name);
  if (!found.ok()) return found.status();
  const gemm::Kernel& kernel = **found;
  const std::optional<gemm::Types> taken = TypesFor(kernel, problem.types, compute_given);
  absl::Status refused = gemm::CheckDevice(kernel, device);
  if (refused.ok() && !taken.has_value()) refused = gemm::CheckTypes(kernel, problem.types);
  if (refused.ok()) refused = CheckForm(kernel, problem);
  if (refused.ok()) refused = gemm::CheckSize(kernel, problem);
  if (refused.ok()) {
    absl::StatusOr<KernelPick> pick =
        Finish(kernel, *taken, request, ChoiceRule::kRequest, "chosen by name");
    if (pick.ok()) return pick;
    refused = pick.status();
  }
  return WithNearest(refused, kernel, request, problem, compute_given, device);
}

// "auto: fastest of the measured for 4096x4096x512, the nearest shape in the tuning table".
std::string TunedReason(const TunedFrom& from, bool exact) {
  return absl::StrCat("auto: fastest of the measured for ", from.m, "x", from.n, "x", from.k,
                      exact ? "" : ", the nearest shape in the tuning table",
                      from.other_versions ? "; with another driver or library" : "",
                      from.other_epilogue ? "; without the epilogue" : "");
}

// Whether the row's measurement also holds for the problem's shape. One that needs a tile more may
// take twice as long.
bool MayStandFor(const TunedRow& row, const gemm::Problem& problem, const PickSite& site) {
  if (row.m == problem.m && row.n == problem.n && row.k == problem.k) return true;
  if (site.estimates.estimates != nullptr) return false;
  const auto same_tiles = [](int64_t x, int64_t y, int tile) {
    return tile == 0 || (x + tile - 1) / tile == (y + tile - 1) / tile;
  };
  return same_tiles(row.m, problem.m, row.kernel->tile_m) &&
         same_tiles(row.n, problem.n, row.kernel->tile_n);
}

// The table's choice, where it has one that the request and the site allow.
std::optional<KernelPick> PickTuned(const KernelRequest& request, const gemm::Problem& problem,
                                    const PickSite& site) {
  if (site.tuned == nullptr || !RulesOf(FormOf(problem)).tuned) return std::nullopt;
  const auto match = site.tuned->Find(problem, [&](const TunedRow& row) {
    if (!request.family.empty() && row.kernel->family != request.family) return false;
    if (!MayStandFor(row, problem, site)) return false;
    if (!gemm::CheckSize(*row.kernel, problem).ok()) return false;
    return gemm::WorkspaceBytes(*row.kernel, problem) <= site.max_workspace_bytes;
  });
  if (!match.has_value()) return std::nullopt;
  const TunedRow& row = *match->row;
  // The meaning of a parameter may depend on the shape, the epilogue and the library: an algorithm
  // of cuBLASLt is a place in a list that is made for each.
  const bool measured = match->exact && !match->other_epilogue && !row.other_versions;
  KernelPick pick =
      PickOf(*row.kernel, measured ? row.params : *gemm::ResolveParams(*row.kernel, {}),
             problem.types.compute);
  pick.rule = match->exact ? ChoiceRule::kTableExact : ChoiceRule::kTableNear;
  pick.tuned = TunedFrom{.m = row.m,
                         .n = row.n,
                         .k = row.k,
                         .seconds = row.seconds,
                         .other_versions = row.other_versions,
                         .other_epilogue = match->other_epilogue};
  pick.reason = TunedReason(*pick.tuned, match->exact);
  return pick;
}

// Checks a request that leaves the choice open.
absl::Status CheckOpenChoice(const KernelRequest& request) {
  if (!request.params.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel.params has ", gemm::Quoted(request.params.begin()->first),
                     ", but launch parameters need a kernel chosen by kernel.name"));
  }
  const auto& families = gemm::Families();
  if (!request.family.empty() && std::find(families.begin(), families.end(),
                                           absl::string_view(request.family)) == families.end()) {
    return absl::NotFoundError(absl::StrCat("kernel.family is ", gemm::Quoted(request.family),
                                            ", but the families are ",
                                            absl::StrJoin(families, ", ")));
  }
  return absl::OkStatus();
}

// Those that need one launch for the problem, where there are such: of a group that others take
// apart.
std::vector<const gemm::Kernel*> InOneLaunchIfAny(std::vector<const gemm::Kernel*> kernels,
                                                  const gemm::Problem& problem) {
  const auto apart = std::stable_partition(
      kernels.begin(), kernels.end(),
      [&](const gemm::Kernel* kernel) { return gemm::TakesInOneLaunch(*kernel, problem); });
  if (apart != kernels.begin()) kernels.erase(apart, kernels.end());
  return kernels;
}

// Deterministic kernels of the catalogue, or of the family, that take the problem on the device.
absl::StatusOr<std::vector<const gemm::Kernel*>> EligibleKernels(const KernelRequest& request,
                                                                 const gemm::Problem& problem,
                                                                 const gemm::DeviceCaps& device) {
  const gemm::Types& types = problem.types;
  std::vector<const gemm::Kernel*> eligible;
  const gemm::Kernel* elsewhere = nullptr;  // takes the types, but not on this device
  bool wrong_form = false;                  // one takes them here, but no batch or no scales
  const gemm::Kernel* smaller = nullptr;    // takes the form, too, but not the size
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    if (!request.family.empty() && kernel->family != request.family) continue;
    if (!gemm::MayBeChosen(*kernel, types)) continue;
    if (!gemm::RunsOn(*kernel, device)) {
      elsewhere = kernel;
    } else if (!CheckForm(*kernel, problem).ok()) {
      wrong_form = true;
    } else if (!gemm::CheckSize(*kernel, problem).ok()) {
      smaller = kernel;
    } else {
      eligible.push_back(kernel);
    }
  }
  if (!eligible.empty()) return InOneLaunchIfAny(std::move(eligible), problem);
  if (smaller != nullptr) return gemm::CheckSize(*smaller, problem);
  if (wrong_form) return NoKernelOfForm(problem, request.family);
  if (elsewhere != nullptr) return gemm::CheckDevice(*elsewhere, device);
  return NoKernelFor(types, request.family);
}

std::string OfFamily(const KernelRequest& request) {
  return request.family.empty() ? "" : absl::StrCat(" of family ", request.family);
}

absl::StatusOr<KernelPick> PickByRank(const KernelRequest& request, const gemm::Types& types,
                                      const std::vector<const gemm::Kernel*>& eligible) {
  const gemm::Kernel* const best = *std::max_element(
      eligible.begin(), eligible.end(),
      [](const gemm::Kernel* x, const gemm::Kernel* y) { return x->auto_rank < y->auto_rank; });
  return Finish(*best, types, request, ChoiceRule::kRank,
                absl::StrCat("auto: ranked first of ", eligible.size(), " eligible kernels",
                             OfFamily(request)));
}

// The kernel that should be the fastest, where one of them has an estimate.
std::optional<KernelPick> PickByEstimate(const KernelRequest& request, const gemm::Problem& problem,
                                         const PickSite& site,
                                         const std::vector<const gemm::Kernel*>& eligible) {
  const std::vector<double> seconds = EstimatedSeconds(problem, site, eligible);
  const std::optional<size_t> best =
      gemm::FastestOf(problem, eligible, seconds, site.max_workspace_bytes);
  if (!best) return std::nullopt;
  const gemm::Kernel& kernel = *eligible[*best];
  KernelPick pick = PickOf(kernel, *gemm::ResolveParams(kernel, {}), problem.types.compute);
  pick.rule = ChoiceRule::kEstimate;
  const auto estimated =
      std::count_if(seconds.begin(), seconds.end(), [](double one) { return std::isfinite(one); });
  pick.reason = absl::StrFormat("auto: by estimate the fastest of %d kernels%s, %.3g us", estimated,
                                OfFamily(request), seconds[*best] * 1e6);
  if (site.estimates.estimates != nullptr) {
    absl::StrAppend(&pick.reason, ", from measurements on ",
                    site.estimates.estimates->devices()[site.estimates.device]);
  }
  return pick;
}

// Chooses by the tables, estimates or ranks.
absl::StatusOr<KernelPick> Choose(const KernelRequest& request, const gemm::Problem& problem,
                                  const PickSite& site) {
  if (const absl::Status status = CheckOpenChoice(request); !status.ok()) return status;
  if (std::optional<KernelPick> tuned = PickTuned(request, problem, site)) return *std::move(tuned);
  const auto eligible = EligibleKernels(request, problem, site.device);
  if (!eligible.ok()) return eligible.status();
  if (std::optional<KernelPick> pick = PickByEstimate(request, problem, site, *eligible)) {
    return *std::move(pick);
  }
  return PickByRank(request, problem.types, *eligible);
}

}  // namespace

bool NamesKernel(const KernelRequest& request) {
  return !request.name.empty() && request.name != "auto";
}

std::vector<double> EstimatedSeconds(const gemm::Problem& problem, const PickSite& site,
                                     absl::Span<const gemm::Kernel* const> kernels) {
  if (site.estimates.estimates == nullptr) return gemm::FormulaSeconds(problem, kernels);
  return site.estimates.estimates->Seconds(problem, kernels, site.estimates.device);
}

absl::StatusOr<KernelPick> PickKernel(const KernelRequest& request, const gemm::Problem& problem,
                                      bool compute_given, const PickSite& site,
                                      KernelChoices* choices) {
  if (NamesKernel(request)) return PickByName(request, problem, compute_given, site.device);
  const bool any = request.family.empty() && request.params.empty();
  if (choices == nullptr || !any) return Choose(request, problem, site);
  if (const auto known = choices->Find(problem, site.max_workspace_bytes)) return *known;
  absl::StatusOr<KernelPick> pick = Choose(request, problem, site);
  if (pick.ok()) {
    choices->Add(problem, site.max_workspace_bytes, std::make_shared<const KernelPick>(*pick));
  }
  return pick;
}

absl::StatusOr<KernelPick> PickKernelByRank(const KernelRequest& request,
                                            const gemm::Problem& problem,
                                            const gemm::DeviceCaps& device) {
  if (NamesKernel(request)) return PickByName(request, problem, /*compute_given=*/true, device);
  if (const absl::Status status = CheckOpenChoice(request); !status.ok()) return status;
  const auto eligible = EligibleKernels(request, problem, device);
  if (!eligible.ok()) return eligible.status();
  return PickByRank(request, problem.types, *eligible);
}

absl::Status ChooseForRowBlock(int64_t product_rows, KernelPick& pick) {
  if (pick.kernel->row_blocks) {
    absl::StrAppend(&pick.reason, "; as for all ", product_rows, " rows of the product");
    return absl::OkStatus();
  }
  const bool named = pick.rule == ChoiceRule::kRequest;
  return absl::Status(
      named ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kFailedPrecondition,
      absl::StrCat("row_block is set, but kernel ", pick.kernel->name, " (", pick.reason,
                   ") does not promise the same rows of D whatever m is; ListKernels gives those "
                   "that do (row_blocks); send the whole product, or choose one of them"));
}

std::map<std::string, int64_t> NamedParams(const gemm::Kernel& kernel,
                                           const gemm::LaunchParams& params) {
  std::map<std::string, int64_t> named;
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    named[std::string(kernel.params[i].name)] = params[i];
  }
  return named;
}

}  // namespace gemmd
