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

// All that jobs have in common that may share a launch. Each product of a batch has the bits that
// its kernel gives it alone (Kernel::batches), so a job's result does not tell what ran beside it.
struct CoalescingKind {
  const gemm::Kernel* kernel = nullptr;
  gemm::LaunchParams params{};
  gemm::Problem problem;
  bool swapped = false;
  ByRole<const MatrixMemory*> residents{};  // operands that all of them read

  // Null for a job that runs alone. That is a job whose form does (FormRules::coalesced), that has
  // a generated operand, whose payload or result is not small, or that is checked or kept.
  static std::optional<CoalescingKind> Of(const AdmittedJob& job, JobHoldings& holdings);

  friend bool operator==(const CoalescingKind& x, const CoalescingKind& y);
};

// The layout of a launch's device memory. The payload has the same layout in the staging block, so
// one copy uploads all of it. Everything starts on a boundary of the arena.
struct CoalescedLayout {
  ByRole<size_t> operands{};  // of those that are sent
  size_t sent_bytes = 0;
  size_t result = 0;
  size_t workspace = 0;
  size_t workspace_bytes = 0;
  size_t bytes = 0;
};

// A job whose kernel has ended. The block belongs to the device, which may be destroyed once the
// holdings' ticket is returned. So the block is released first.
struct Computed {
  std::shared_ptr<JobHoldings> holdings;
  StagingBlock result_block;  // with a small result, copied; else empty
  absl::Duration device_time;
  // The jobs of its launch, and this job's part of the kernel's time.
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
  // Copies its payload to its place in the launch's block; nothing once the job has ended.
  virtual void CopySent(const CoalescedLayout& layout, size_t index, std::byte* to) = 0;
  // Copies its dense product into a block of its receiver. False if the receiver holds its share of
  // the blocks: then PutBack is called.
  virtual bool CopyProduct(const std::byte* product, Computed& computed) = 0;
  // Copies the product to the device memory that the job has for its result. It is downloaded from
  // there once its receiver releases blocks, so slow receivers fill neither the pool nor host
  // memory. `results` keeps the product until then.
  virtual void PutBack(const std::byte* product, std::shared_ptr<StagingBlock> results,
                       Computed computed) = 0;
  virtual void OnComputed(absl::Status status, Computed computed) = 0;
};

// One launch of several jobs, until its end is known. Not thread-safe.
class CoalescedLaunch {
 public:
  // For jobs of this kind. `plan` is that of each, `measured` its JobCost's.
  CoalescedLaunch(EngineCore& core, size_t device_index, CoalescingKind kind, Plan plan,
                  absl::Duration measured);

  // How many jobs one staging block takes, each way: `allowed`, or half of it, or a quarter, and so
  // on.
  int Most(JobHoldings& holdings, int allowed) const;
  // Takes the memory and the blocks for so many jobs. False if they are not free now.
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
  // The layout for so many jobs.
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
