// Small jobs that are alike and wait together run in one launch, as a batch.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gemm/kernel.h"
#include "gemm/problem.h"
#include "server/engine/core/core.h"
#include "server/engine/core/guards.h"
#include "server/engine/device/staging.h"
#include "server/engine/job/job_admission.h"
#include "server/engine/job/plan.h"
#include "server/engine/policy/scheduler.h"

namespace gemmd {

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
};

// What a job has once its kernel has ended. The block is of the device, which may go once the
// holdings' ticket has: it goes first.
struct Computed {
  std::shared_ptr<JobHoldings> holdings;
  StagingBlock result_block;  // with a small result, copied; else empty
  absl::Duration device_time;
  // Of a launch of several jobs, and the part of its time that is this job's.
  int jobs = 1;
  absl::Duration kernel_time;

  void Release() {
    result_block.Reset();
    holdings.reset();
  }
};

// A job that may share a launch, as the launch sees it.
class CoalescedJob {
 public:
  virtual ~CoalescedJob() = default;
  // Copies its payload to where that lies in a launch's block; nothing once it has ended.
  virtual void CopySent(const CoalescedLayout& layout, size_t index, std::byte* to) = 0;
  // Its dense product into a block of its receiver, which may be slow to read it. False where that
  // one holds its share of the blocks.
  virtual bool CopyProduct(const std::byte* product, Computed& computed) = 0;
  // Else to the device memory that the job has for its result, from where it is downloaded once its
  // receiver lets go of blocks: so that slow receivers fill neither the pool nor the host's memory.
  // `results` keeps the product until it is there.
  virtual void PutBack(const std::byte* product, std::shared_ptr<StagingBlock> results,
                       Computed computed) = 0;
  virtual void OnComputed(absl::Status status, Computed computed) = 0;
};

// One launch of several jobs, until its end is known. Not thread-safe.
class CoalescedLaunch {
 public:
  // Of jobs of this kind, of which each has `plan`, and took `measured` lately (JobCost).
  CoalescedLaunch(EngineCore& core, size_t device_index, CoalescingKind kind, Plan plan,
                  absl::Duration measured);

  // How many jobs, of at most `allowed`, one staging block takes, each way. Powers of two below it.
  int Most(JobHoldings& holdings, int allowed) const;
  // Takes the memory and the blocks for so many jobs. False where they are not free now.
  bool Reserve(JobHoldings& holdings, int jobs);
  void Take(StreamLease lease) { lease_ = std::move(lease); }
  void Add(std::shared_ptr<CoalescedJob> job, std::shared_ptr<JobHoldings> holdings) {
    members_.push_back({std::move(job), std::move(holdings)});
  }
  bool empty() const { return members_.empty(); }

  // Enqueues everything, and tells the jobs once it has ended.
  static void Run(CoalescedLaunch launch);

 private:
  struct Member {
    std::shared_ptr<CoalescedJob> job;
    std::shared_ptr<JobHoldings> holdings;
  };
  struct Ended {
    std::shared_ptr<CoalescedJob> job;
    Computed computed;
    const std::byte* product = nullptr;  // its dense bytes, in the launch's block
  };

  Device& device() const { return *core_->devices[device_index_]; }
  // The plan of so many jobs, as a batch.
  Plan BatchPlan(int jobs) const;
  // Where things lie for so many jobs.
  CoalescedLayout LayoutOf(JobHoldings& holdings, int jobs) const;
  absl::Status Enqueue(const CoalescedLayout& layout, JobHoldings& holdings) const;
  // On the device's thread: passes the stream on first, and has the jobs told elsewhere.
  static void End(CoalescedLaunch launch, absl::Status status);
  static void Tell(std::vector<Ended> ended, std::shared_ptr<StagingBlock> results,
                   const absl::Status& status);

  EngineCore* core_;
  size_t device_index_;
  CoalescingKind kind_;
  Plan plan_;  // of one job
  absl::Duration measured_;
  // The members' tickets are among their holdings, and go last.
  std::vector<Member> members_;
  StreamLease lease_;
  DeviceBuffer memory_;
  StagingBlock sent_, results_;
  HangGuard guard_;
};

}  // namespace gemmd
