// The part of JobImpl that is for checked products (result_check.h).
#include <string>

#include "server/engine/job/job_impl.h"

namespace gemmd {

// The epilogue's own pass, where there is one, counts as part of the kernel.
absl::Status JobImpl::EnqueueChecked(Stream& stream, JobHoldings& holdings, const KernelPick& pick,
                                     const gemm::Operands& operands) {
  const gemm::Problem& problem = admitted_.plan.problem;
  const CheckPlan& plan = *admitted_.check.plan;
  std::byte* const memory = holdings.check_memory.data();
  const gemm::Operands checked =
      plan.accumulators ? gemm::AccumulatorOperands(problem, operands, memory) : operands;
  const gemm::Workspace workspace{holdings.workspace.data(), holdings.workspace.bytes()};
  absl::Status status =
      stream.Launch(*pick.kernel, plan.problem, checked, workspace, pick.params,
                    {.transposed = holdings.transposed.get(), .stop = stop_flag()});
  if (status.ok() && plan.accumulators) status = stream.Finish(problem, operands, memory);
  if (status.ok()) status = stream.Record(*holdings.kernel_end);
  if (status.ok()) {
    status = stream.Check({.problem = plan.problem,
                           .operands = checked,
                           .seed = plan.seed,
                           .scratch = memory + plan.accumulator_bytes});
  }
  if (!status.ok()) return status;
  return stream.Record(*holdings.check_end);
}

bool JobImpl::TakeCheck(Launched& launched, absl::Status& status) {
  const std::optional<CheckPlan>& plan = admitted_.check.plan;
  if (!plan.has_value() || !status.ok()) return true;
  const gemm::CheckOutcome found = launched.lease->check_outcome();
  MutexLock lock(mutex_);
  if (holdings_ == nullptr) return true;  // cancelled: nobody waits for the product
  CheckReport& report = report_.check;
  report.before_activation = plan->accumulators;
  report.of_bound = found.of_likely;
  report.uncovered_rows = found.uncovered_rows;
  if (!launched.first.has_value()) {
    if (!found.likely()) {
      launched.first = found;
      return false;
    }
    report.result = Judge(found, nullptr);
    return true;
  }
  report.result = Judge(*launched.first, &found);
  report.failed_kernel = std::string(plan->first.kernel->name);
  report.failed_of_bound = launched.first->of_likely;
  if (report.result == CheckResult::kLost) {
    status = LostProduct(*plan, *launched.first, found, device().info().name);
    return true;
  }
  report_.kernel = std::string(plan->second.kernel->name);
  report_.reason = plan->second.reason;
  report_.rule = plan->second.rule;
  report_.tuned = plan->second.tuned;
  report_.params = plan->second.named_params;
  return true;
}

}  // namespace gemmd
