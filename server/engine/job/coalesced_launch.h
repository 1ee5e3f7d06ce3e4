// Small jobs that are alike and wait together run in one launch, as a batch.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "gemm/kernel.h"
#include "gemm/problem.h"
#include "server/engine/core/guards.h"
#include "server/engine/device/staging.h"
#include "server/engine/job/job_admission.h"
#include "server/engine/job/plan.h"
#include "server/engine/policy/scheduler.h"

namespace gemmd {

class JobImpl;

// What jobs that may share a launch have in common. Each product of a batch has the bits that its
// kernel gives it alone (Kernel::batches), so a job's result does not tell what ran beside it.
struct CoalescingKind {
  const gemm::Kernel* kernel = nullptr;
  gemm::LaunchParams params{};
  gemm::Problem problem;
  bool swapped = false;
  ByRole<const MatrixMemory*> residents{};  // operands that all of them read

  // Null for a job that runs alone: one whose form does (FormRules::coalesced), whose operands are
  // not all sent or resident, whose payload or result is not small, or that is checked or kept.
  static std::optional<CoalescingKind> Of(const AdmittedJob& job, JobHoldings& holdings);

  friend bool operator==(const CoalescingKind& x, const CoalescingKind& y);
};

// Where things lie in the device memory of a launch. What is sent lies the same way in the staging
// block, so that one copy takes all of it up. Everything starts where the arena's buffers may.
struct CoalescedLayout {
  ByRole<size_t> operands{};  // of those that are sent
  size_t sent_bytes = 0;
  size_t result = 0;
  size_t workspace = 0;
  size_t workspace_bytes = 0;
  size_t bytes = 0;

  // Of `jobs` jobs of this kind.
  static CoalescedLayout Of(const CoalescingKind& kind, const Plan& plan, JobHoldings& holdings,
                            int jobs);
};

// The plan of `jobs` such jobs, as a batch.
Plan BatchPlan(const CoalescingKind& kind, const Plan& plan, int jobs);

// Such a launch, until its end is known.
struct CoalescedLaunch {
  struct Member {
    std::shared_ptr<JobImpl> job;
    std::shared_ptr<JobHoldings> holdings;
  };

  // The members' tickets are among their holdings, and go last.
  std::vector<Member> members;
  StreamLease lease;
  DeviceBuffer memory;
  StagingBlock sent, results;
  HangGuard guard;
};

}  // namespace gemmd
