#include "server/engine/job/result_check.h"

#include <sys/random.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gemm/catalogue.h"
#include "gemm/scalars.h"

namespace gemmd {
namespace {

uint64_t RandomSeed() {
  uint64_t seed = 0;
  // So few bytes always come at once.
  [[maybe_unused]] const ssize_t bytes = getrandom(&seed, sizeof(seed), 0);
  return seed;
}

// A fraction of 1 from a seed whose other bits draw the signs.
double Fraction(uint64_t seed) { return static_cast<double>(seed >> 11) * 0x1p-53; }

// The best kernel besides `first`: of another family where there is one, so that the two share
// as little as possible.
KernelPick AnotherKernel(const KernelPick& first, const gemm::Problem& problem,
                         const gemm::DeviceCaps& device) {
  const gemm::Kernel* best = nullptr;
  const auto rank = [&](const gemm::Kernel& kernel) {
    return std::pair(kernel.family != first.kernel->family, kernel.auto_rank);
  };
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    if (kernel == first.kernel || !gemm::Takes(*kernel, problem.types)) continue;
    if (!gemm::RunsOn(*kernel, device) || !gemm::CheckSize(*kernel, problem).ok()) continue;
    if (best == nullptr || rank(*kernel) > rank(*best)) best = kernel;
  }
  if (best == nullptr) return first;
  absl::StatusOr<KernelPick> pick =
      PickKernelByRank({.name = std::string(best->name)}, problem, device);
  if (!pick.ok()) return first;
  pick->reason = absl::StrCat("the product of ", first.kernel->name, " failed its check");
  pick->rule = ChoiceRule::kCheck;
  return *std::move(pick);
}

// No check takes place, for the reason `why_not`; an error where the request asks for one.
absl::StatusOr<CheckDecision> Unchecked(const CheckWish& wish, std::string why_not,
                                        absl::string_view remedy) {
  if (wish.by_request) {
    return absl::FailedPreconditionError(
        absl::StrCat("verify is always, but ", why_not, "; ", remedy));
  }
  CheckDecision decision;
  decision.why_not = std::move(why_not);
  return decision;
}

}  // namespace

CheckWish WishFor(Verify request, const EngineOptions& policy) {
  const Verify mode = Stricter(request, policy.verify);
  CheckWish wish;
  if (mode == Verify::kOff) return wish;
  const uint64_t draw = mode == Verify::kSampled ? RandomSeed() : 0;
  wish.wanted = mode == Verify::kAlways || Fraction(draw) < policy.verify_sample_rate;
  wish.by_request = request == Verify::kAlways;
  if (wish.wanted) wish.seed = RandomSeed();
  return wish;
}

absl::StatusOr<CheckDecision> PlanCheck(const CheckWish& wish, const KernelRequest& request,
                                        Form form, const gemm::Problem& given,
                                        const KernelPick& pick, const gemm::DeviceCaps& device) {
  CheckDecision decision;
  if (!wish.wanted) return decision;
  const gemm::Problem problem = gemm::RoundScalars(given);
  if (problem.alpha == 0) {
    decision.why_not = "alpha is 0: there is no product to check";
    return decision;
  }
  if (const FormRules& rules = RulesOf(form); !rules.checked) {
    return Unchecked(
        wish,
        absl::StrCat(rules.name, " are not checked (", Given(form, ProductCount(problem)), ")"),
        "leave verify out");
  }
  CheckPlan plan{.problem = problem, .first = pick, .seed = wish.seed};
  plan.accumulators = problem.activation != gemm::Activation::kNone;
  if (plan.accumulators) {
    plan.problem = gemm::AccumulatorProblem(problem);
    plan.accumulator_bytes = gemm::AccumulatorMatrixBytes(problem);
    absl::StatusOr<KernelPick> first = PickKernelByRank(request, plan.problem, device);
    if (!first.ok()) {
      return Unchecked(
          wish,
          absl::StrCat("with an activation the check needs the accumulators, which kernel ",
                       pick.kernel->name, " does not give: ", first.status().message()),
          "choose another kernel, or leave verify out");
    }
    // If the request insists, all of its blocks are checked and have the same kernel.
    if (form == Form::kRowBlock && !wish.by_request && first->kernel != pick.kernel) {
      decision.why_not =
          absl::StrCat("with an activation the check takes kernel ", first->kernel->name,
                       ", and all blocks of rows have kernel ", pick.kernel->name);
      return decision;
    }
    plan.first = *std::move(first);
  }
  plan.second = AnotherKernel(plan.first, plan.problem, device);
  // The arrays of the scratch follow the accumulators.
  constexpr size_t kAlignment = 256;
  plan.accumulator_bytes = (plan.accumulator_bytes + kAlignment - 1) / kAlignment * kAlignment;
  plan.scratch_bytes = gemm::CheckScratchBytes(plan.problem);
  plan.workspace_bytes = std::max(gemm::WorkspaceBytes(*plan.first.kernel, plan.problem),
                                  gemm::WorkspaceBytes(*plan.second.kernel, plan.problem));
  decision.plan = std::move(plan);
  return decision;
}

CheckResult Judge(const gemm::CheckOutcome& first, const gemm::CheckOutcome* second) {
  if (second == nullptr) {
    return first.uncovered_rows > 0 ? CheckResult::kPartial : CheckResult::kPassed;
  }
  if (!second->possible()) return CheckResult::kLost;
  if (!first.possible()) return CheckResult::kWrong;
  // A right kernel may have accumulated to infinity there, which another one does not.
  const bool overflowed = first.uncovered_rows > 0 && std::isinf(first.of_likely);
  return second->likely() && !overflowed ? CheckResult::kSuspect : CheckResult::kUnusual;
}

absl::Status LostProduct(const CheckPlan& plan, const gemm::CheckOutcome& first,
                         const gemm::CheckOutcome& second, absl::string_view device) {
  return absl::DataLossError(absl::StrCat(
      "the product failed its check twice on ", device, ": by kernel ", plan.first.kernel->name,
      " row ", first.worst_row, " is off by ", first.of_possible,
      " times the most that a right kernel may be, and by kernel ", plan.second.kernel->name,
      " row ", second.worst_row, " by ", second.of_possible, " times; no result is delivered"));
}

}  // namespace gemmd
