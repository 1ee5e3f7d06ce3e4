// One job, from its header to its end.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/gate.h"
#include "server/base/mutex.h"
#include "server/engine/core/core.h"
#include "server/engine/core/guards.h"
#include "server/engine/job/coalesced_launch.h"
#include "server/engine/job/job.h"
#include "server/engine/job/job_admission.h"
#include "server/engine/job/small_payload.h"
#include "server/engine/transfer/payload_upload.h"
#include "server/engine/transfer/result_download.h"

namespace gemmd {

// The payload of a job. A large job has a PayloadUpload for each operand. A small job has all
// of it in one block, which it holds only while it has a stream.
struct JobPayload {
  ByRole<std::shared_ptr<PayloadUpload>> uploads;
  StagingBlock block;
};

// A product on a stream, until its end is known.
struct Launched {
  StreamLease lease;
  JobPayload payload;
  std::shared_ptr<JobHoldings> holdings;
  StagingBlock result_block;  // as that of Computed
  // The outcome of a first product's check, if the product had to be computed again.
  std::optional<gemm::CheckOutcome> first;
  HangGuard guard;  // of what is enqueued
  gemm::LaunchPiece piece;
};

// The steps of a job:
//
//   Start        -> payload arrives (Append). The bytes of a large job are uploaded as they arrive
//                   (PayloadUpload); those of a small job wait in host memory and are uploaded just
//                   before the kernel. Meanwhile resident operands on other devices are copied
//                   (Replica)
//   Ready        -> the scheduler's queue; from here on the job is accepted, and its operands to
//                   release are released
//   Run          -> the job has a stream; a small job's bytes go into a staging block
//   Coalesce     -> or: it shares the stream with small jobs like it that wait. They run as one
//                   batch (CoalescedLaunch), and each goes on with OnComputed
//   Launch       -> uploads, generators, kernel, check and a small result's download are enqueued
//                   at once. A product of many launches goes in pieces, each once the one before
//                   has run, so that the device's thread sees to others between. The payload and
//                   the result of the smallest stay in host memory (ZeroCopy)
//   OnKernelDone -> a product that fails its check is launched again, by another kernel
//   OnComputed   -> a large result is downloaded block by block (ResultDownload)
//   Complete     -> or, from any of these, Fail.
//
// Always held by a shared_ptr, which pending work keeps.
class JobImpl final : public Job,
                      public Cancellable,
                      public Runnable,
                      public CoalescedJob,
                      public std::enable_shared_from_this<JobImpl> {
 public:
  JobImpl(EngineCore& core, AdmittedJob admitted, std::shared_ptr<JobListener> listener,
          absl::Time arrived);

  void Start() override;
  void Append(Role role, uint64_t offset, absl::Cord bytes,
              absl::AnyInvocable<void()> consumed) override;
  bool AwaitsPayload() override;
  void EndOfPayload() override;
  void Cancel(absl::Status why) override;
  absl::string_view Where() override;
  bool Needs(const Device& needed) override { return &needed == &device(); }
  void Prepare() override;
  void Run(StreamLease stream) override;

 private:
  // At most kSmallBytes.
  bool has_small_payload() const;
  bool has_small_result() const;
  Device& device() const { return *core_.devices[admitted_.device_index]; }

  void AwaitReplicas();
  void StartUploads();
  // The payload, or a replica, has arrived: one item less to wait for.
  void Arrived();
  absl::Status AppendSmall(Role role, uint64_t offset, absl::Cord bytes, bool& complete);
  void Ready();
  void OnAccepted();
  void ReleaseOperands() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool NeedsStaging();
  // False if the job has ended.
  bool StageSmall(StagingBlock block);

  // Has others like this job run in one launch with it. False where it runs alone, and `lease` is
  // as before.
  bool Coalesce(StreamLease& lease);
  bool Join(CoalescedLaunch& launch);
  void CopySent(const CoalescedLayout& layout, size_t index, std::byte* to) override;
  bool CopyProduct(const std::byte* product, Computed& computed) override;
  void PutBack(const std::byte* product, std::shared_ptr<StagingBlock> results,
               Computed computed) override;

  void Launch(StreamLease lease);
  absl::Status EnqueueInputs(Stream& stream, JobHoldings& holdings, const JobPayload& payload);
  // The product and all that follows it, and then goes on with OnKernelDone. `enqueued`: so far.
  void EnqueueProduct(Launched launched, absl::Status enqueued);
  absl::Status EnqueueKernel(Launched& launched, const KernelPick& pick);
  // A piece has run: goes on with the next one, where somebody waits for the product still.
  void Continue(Launched launched, absl::Status status);
  // Set once the job has ended. Keeps the job.
  StopFlag stop_flag() { return {shared_from_this(), &stopped_}; }
  // The memory that the kernel reads and writes.
  gemm::Operands OperandsOf(Launched& launched) const;
  absl::Status EnqueueChecked(Stream& stream, JobHoldings& holdings, const KernelPick& pick,
                              const gemm::Operands& operands);
  void OnKernelDone(Launched launched, absl::Status status);
  // False where the product has to be computed again; else the check's report is complete, and
  // `status` an error where the product is lost.
  bool TakeCheck(Launched& launched, absl::Status& status);
  // Goes on with OnComputed: on this thread, which is the device's, where that has nothing
  // else to do.
  void HandOver(absl::Status status, Computed computed);
  void OnComputed(absl::Status status, Computed computed) override;
  // Called for every job that has left the device.
  void TellDeviceTime(absl::Duration time) const;
  absl::Duration UploadTime(const JobHoldings& holdings) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendResult(Computed computed);
  void Complete(const DownloadTimes& times);
  void Fail(absl::Status why);
  // Ends the job: stops its pending work and returns its holdings. Null if it had ended already.
  std::shared_ptr<JobHoldings> TakeHoldings();

  EngineCore& core_;
  AdmittedJob admitted_;  // but for holdings, which move to holdings_
  const absl::Time arrived_;
  ZeroCopy zero_copy_;
  StagedLayout payload_layout_{};       // of a small payload, where it is staged
  std::optional<CoalescingKind> kind_;  // null: runs alone
  DeadlineGuard deadline_guard_;
  ListenerGate gate_;
  std::atomic<bool> stopped_{false};  // written once, as holdings_ goes

  Mutex mutex_;
  std::shared_ptr<JobListener> listener_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<JobHoldings> holdings_ ABSL_GUARDED_BY(mutex_);  // null once ended
  ByRole<std::shared_ptr<PayloadUpload>> uploads_ ABSL_GUARDED_BY(mutex_);
  int awaited_ ABSL_GUARDED_BY(mutex_) = 1;  // replicas, and the payload
  int pending_uploads_ ABSL_GUARDED_BY(mutex_) = 0;
  SmallPayload small_payload_ ABSL_GUARDED_BY(mutex_);
  uint64_t received_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool operands_released_ ABSL_GUARDED_BY(mutex_) = false;
  bool launched_ ABSL_GUARDED_BY(mutex_) = false;  // and so not in the queue
  std::shared_ptr<ResultDownload> download_ ABSL_GUARDED_BY(mutex_);
  absl::Time ready_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::string_view where_ ABSL_GUARDED_BY(mutex_) = "in transfer";
  JobReport report_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
