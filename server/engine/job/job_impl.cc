#include "server/engine/job/job_impl.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"

namespace gemmd {
namespace {

OperandMemory MemoryOf(const std::shared_ptr<MatrixMemory>& memory) {
  if (memory == nullptr) return {};
  return {memory->buffer.data(), memory->leading_dimension()};
}

JobReport InitialReport(const EngineCore& core, const AdmittedJob& job) {
  JobReport report;
  report.kernel = std::string(job.pick.kernel->name);
  report.reason = job.pick.reason;
  report.rule = job.pick.rule;
  report.tuned = job.pick.tuned;
  report.params = job.pick.named_params;
  report.device = core.devices[job.device_index]->info().name;
  report.m = job.plan.m;
  report.n = job.plan.n;
  report.k = job.plan.k;
  report.batch = job.plan.problem.batch;
  if (job.plan.form == Form::kGroup) report.group = job.plan.products();
  report.types = job.plan.problem.types;
  report.result = job.plan.result;
  if (job.spec.quota != nullptr) report.caller = job.spec.quota->caller;
  report.check.why_not = job.check.why_not;
  for (const Role role : kRoles) {
    const JobInput& input = (*job.holdings)[role];
    if (!input.replica) continue;
    const MatrixMemory& original = *input.pin.memory();
    report.copies.push_back({.role = role,
                             .from_device = original.device->info().name,
                             .bytes = original.shape.dense_bytes(),
                             .route = input.replica.replica()->route(),
                             .reused = input.replica.reused()});
  }
  return report;
}

}  // namespace

JobImpl::JobImpl(EngineCore& core, AdmittedJob admitted, std::shared_ptr<JobListener> listener,
                 absl::Time arrived)
    : core_(core), admitted_(std::move(admitted)), arrived_(arrived) {
  MutexLock lock(mutex_);
  listener_ = std::move(listener);
  report_ = InitialReport(core_, admitted_);
  holdings_ = std::move(admitted_.holdings);
  ByRole<const Shape*> payload{};
  for (const Role role : kRoles) {
    const JobInput& input = (*holdings_)[role];
    if (input.replica) ++awaited_;
    if (input.payload) payload[role] = &input.memory->shape;
  }
  zero_copy_ = ZeroCopy::Of(admitted_, *holdings_, core_.options.zero_copy_bytes);
  payload_layout_ = zero_copy_.payload ? PitchedLayout(payload) : DenseLayout(payload);
  if (has_small_payload()) small_payload_ = SmallPayload(payload_layout_);
  kind_ = CoalescingKind::Of(admitted_, *holdings_);
}

bool JobImpl::has_small_payload() const { return admitted_.payload_bytes <= kSmallBytes; }

bool JobImpl::has_small_result() const {
  return admitted_.plan.result.dense_bytes() <= kSmallBytes;
}

absl::string_view JobImpl::Where() {
  MutexLock lock(mutex_);
  return where_;
}

void JobImpl::Start() {
  // Lost or cancelled before this was registered: nobody else ends it.
  absl::Status ended = deadline_guard_.Begin(core_, weak_from_this(), admitted_.spec.deadline);
  ended.Update(device().Health());
  if (!ended.ok()) return Fail(std::move(ended));
  AwaitReplicas();
  if (admitted_.payload_bytes == 0) return Arrived();
  if (!has_small_payload()) StartUploads();
}

void JobImpl::AwaitReplicas() {
  std::shared_ptr<JobHoldings> holdings;
  {
    MutexLock lock(mutex_);
    holdings = holdings_;
  }
  if (holdings == nullptr) return;
  // Not through `holdings`, which a replica would then hold until its copy has ended,
  // though the job may be cancelled.
  const absl::Time begun = SteadyNow();
  std::vector<std::shared_ptr<Replica>> replicas;
  for (JobInput& input : holdings->inputs) {
    if (input.replica) replicas.push_back(input.replica.replica());
  }
  holdings.reset();
  for (const std::shared_ptr<Replica>& replica : replicas) {
    replica->Await([self = shared_from_this(), begun](const absl::Status& status) {
      if (!status.ok()) return self->Fail(status);
      {
        MutexLock lock(self->mutex_);
        self->report_.phases.device_to_device = SteadyNow() - begun;
      }
      self->Arrived();
    });
  }
}

void JobImpl::Arrived() {
  {
    MutexLock lock(mutex_);
    if (--awaited_ > 0) return;
  }
  Ready();
}

void JobImpl::StartUploads() {
  MutexLock lock(mutex_);
  if (holdings_ == nullptr) return;
  for (const Role role : kRoles) {
    const JobInput& input = (*holdings_)[role];
    if (!input.payload) continue;
    ++pending_uploads_;
    uploads_[role] = std::make_shared<PayloadUpload>(
        std::string(Name(role)), input.memory, 0, input.memory->shape.dense_bytes(), *core_.workers,
        [self = shared_from_this()](absl::Status status) {
          if (!status.ok()) return self->Fail(std::move(status));
          {
            MutexLock lock(self->mutex_);
            if (--self->pending_uploads_ > 0) return;
          }
          self->Arrived();
        });
  }
}

void JobImpl::Append(Role role, uint64_t offset, absl::Cord bytes,
                     absl::AnyInvocable<void()> consumed) {
  std::shared_ptr<PayloadUpload> upload;
  absl::Status status;
  bool complete = false;
  if (payload_layout_[role].lines == 0) {
    status = absl::InvalidArgumentError(absl::StrCat(
        Name(role), ": a chunk came, but the source of ", Name(role), " is not payload"));
  } else if (has_small_payload()) {
    status = AppendSmall(role, offset, std::move(bytes), complete);
  } else {
    MutexLock lock(mutex_);
    upload = uploads_[role];  // null where the job has ended
    received_bytes_ += bytes.size();
    if (received_bytes_ == admitted_.payload_bytes) report_.phases.receive = SteadyNow() - arrived_;
  }
  if (upload != nullptr) {
    // Only a chunk of the branch before was moved from, and that has no upload.
    // NOLINTNEXTLINE(bugprone-use-after-move)
    status = upload->Append(offset, std::move(bytes), std::move(consumed));
  } else if (consumed) {
    consumed();
  }
  if (!status.ok()) return Fail(std::move(status));
  if (complete) Arrived();
}

absl::Status JobImpl::AppendSmall(Role role, uint64_t offset, absl::Cord bytes, bool& complete) {
  MutexLock lock(mutex_);
  if (holdings_ == nullptr) return absl::OkStatus();
  const size_t size = bytes.size();
  absl::Status status = small_payload_.Append(role, offset, std::move(bytes));
  if (!status.ok()) return status;
  received_bytes_ += size;
  complete = small_payload_.complete();
  if (complete) report_.phases.receive = SteadyNow() - arrived_;
  return absl::OkStatus();
}

bool JobImpl::AwaitsPayload() {
  MutexLock lock(mutex_);
  return holdings_ != nullptr && received_bytes_ < admitted_.payload_bytes;
}

void JobImpl::EndOfPayload() {
  ByRole<std::shared_ptr<PayloadUpload>> uploads;
  absl::Status status;
  {
    MutexLock lock(mutex_);
    if (holdings_ == nullptr || received_bytes_ == admitted_.payload_bytes) return;
    uploads = uploads_;
    status = absl::InvalidArgumentError(absl::StrCat("the payload ended after ", received_bytes_,
                                                     " bytes, but the job's operands have ",
                                                     admitted_.payload_bytes));
  }
  for (const std::shared_ptr<PayloadUpload>& upload : uploads) {
    if (upload == nullptr) continue;
    absl::Status incomplete = upload->CheckComplete();
    if (!incomplete.ok()) status = std::move(incomplete);
  }
  Fail(std::move(status));
}

void JobImpl::Ready() {
  {
    MutexLock lock(mutex_);
    if (holdings_ == nullptr) return;
    ready_ = SteadyNow();
    where_ = "in the queue";
    // The estimate of the header's time may be old by now.
    admitted_.claim.cost = core_.costs[admitted_.device_index]->Estimate(admitted_.work);
  }
  absl::Status status =
      core_.schedulers[admitted_.device_index]->Submit(shared_from_this(), admitted_.claim);
  if (!status.ok()) return Fail(std::move(status));
  OnAccepted();
}

// The job has a place in the queue, or a stream already, and may have ended.
void JobImpl::OnAccepted() {
  MutexLock lock(mutex_);
  if (holdings_ == nullptr) return;
  ReleaseOperands();
  small_payload_.LetGoOfReadBuffers();
}

// Before anyone can hear that the job has run, and not where it is refused.
void JobImpl::ReleaseOperands() {
  if (!std::exchange(operands_released_, true)) {
    ReleaseResidents(core_, admitted_.spec, *holdings_);
  }
}

bool JobImpl::NeedsStaging() {
  MutexLock lock(mutex_);
  return holdings_ != nullptr && admitted_.payload_bytes > 0 && has_small_payload() &&
         !small_payload_.staged();
}

bool JobImpl::StageSmall(StagingBlock block) {
  MutexLock lock(mutex_);
  if (holdings_ == nullptr) return false;
  small_payload_.Stage(std::move(block));
  return true;
}

// Here the copy costs the device's thread nothing.
void JobImpl::Prepare() {
  if (!NeedsStaging()) return;
  if (StagingBlock block = device().upload_staging().TryAcquire()) StageSmall(std::move(block));
}

// A small job takes a staging block only now: so the streams bound how many
// blocks such jobs hold, and a queue of them leaves the rest to uploads. A stream
// waits for the block, so the job is the next to get one.
void JobImpl::Run(StreamLease lease) {
  if (Coalesce(lease)) return;
  if (!NeedsStaging()) return Launch(std::move(lease));
  StagingPool& staging = device().upload_staging();
  if (StagingBlock block = staging.TryAcquire()) {
    StageSmall(std::move(block));
    return Launch(std::move(lease));
  }
  staging.Acquire(
      [self = shared_from_this(), lease = std::move(lease)](StagingBlock block) mutable {
        if (!self->StageSmall(std::move(block))) return;
        self->device().Execute(
            [self, lease = std::move(lease)]() mutable { self->Launch(std::move(lease)); });
      },
      StagingPool::Turn::kNext);
}

void JobImpl::Launch(StreamLease lease) {
  const absl::Time now = SteadyNow();
  if (now >= admitted_.spec.deadline) {
    return Fail(absl::DeadlineExceededError("the job's deadline passed before its launch"));
  }
  Launched launched;
  {
    // All of it at once: a job that is cancelled meanwhile releases its own.
    MutexLock lock(mutex_);
    if (holdings_ == nullptr) return;
    ReleaseOperands();
    launched_ = true;
    launched.holdings = holdings_;
    holdings_->work.Begin();
    launched.payload.uploads = uploads_;
    launched.payload.block = small_payload_.TakeBlock();
    report_.phases.queue = now - ready_;
    where_ = "while it ran";
  }
  launched.guard = HangGuard(core_, admitted_.device_index, WorkOf(admitted_.plan.problem),
                             admitted_.claim.cost.measured);
  absl::Status status = EnqueueInputs(*lease, *launched.holdings, launched.payload);
  launched.lease = std::move(lease);
  EnqueueProduct(std::move(launched), std::move(status));
}

void JobImpl::EnqueueProduct(Launched launched, absl::Status enqueued) {
  Stream& stream = *launched.lease;
  JobHoldings& holdings = *launched.holdings;
  const bool again = launched.first.has_value();
  const KernelPick& pick = again ? admitted_.check.plan->second : admitted_.pick;
  StagingBlock& block = launched.result_block;
  const bool begins = !launched.piece.more();
  if (enqueued.ok() && begins && admitted_.spec.stream_result && has_small_result() && !block) {
    block = device().download_staging().TryAcquire(admitted_.spec.receiver);
  }
  if (enqueued.ok()) enqueued = EnqueueKernel(launched, pick);
  if (enqueued.ok() && launched.piece.more()) {
    return stream.Notify(
        [self = shared_from_this(), launched = std::move(launched)](absl::Status status) mutable {
          self->Continue(std::move(launched), std::move(status));
        });
  }
  const bool copied = block && !zero_copy_.result;
  if (enqueued.ok() && copied) {
    enqueued = stream.Download(holdings.result->pitched(), 0, holdings.result->shape.dense_bytes(),
                               block.data());
  }
  const Event* last = holdings.check_end ? holdings.check_end.get() : holdings.kernel_end.get();
  if (copied || !enqueued.ok()) last = nullptr;
  stream.Notify(
      [self = shared_from_this(), launched = std::move(launched),
       enqueued = std::move(enqueued)](absl::Status status) mutable {
        status.Update(enqueued);
        self->OnKernelDone(std::move(launched), std::move(status));
      },
      {.last = last});
}

void JobImpl::Continue(Launched launched, absl::Status status) {
  if (status.ok() && stopped_) status = gemm::Stopped();
  if (!status.ok()) return OnKernelDone(std::move(launched), std::move(status));
  EnqueueProduct(std::move(launched), absl::OkStatus());
}

void JobImpl::OnKernelDone(Launched launched, absl::Status status) {
  launched.guard.End();
  launched.payload = JobPayload();
  if (!TakeCheck(launched, status)) {
    launched.holdings->transposed.reset();  // the first kernel's
    launched.guard = HangGuard(core_, admitted_.device_index, WorkOf(admitted_.plan.problem));
    return EnqueueProduct(std::move(launched), absl::OkStatus());
  }
  Computed computed{.holdings = std::move(launched.holdings),
                    .result_block = std::move(launched.result_block)};
  // The next job starts while this one's result is sent.
  computed.device_time = launched.lease.Reset();
  HandOver(std::move(status), std::move(computed));
}

// Telling the caller, with a write to a socket, takes longer than the device's thread needs
// for a small job.
void JobImpl::HandOver(absl::Status status, Computed computed) {
  if (!device().CompletionThreadIsBusy()) return OnComputed(std::move(status), std::move(computed));
  core_.answers->Schedule([self = shared_from_this(), status = std::move(status),
                           computed = std::move(computed)]() mutable {
    self->OnComputed(std::move(status), std::move(computed));
  });
}

absl::Status JobImpl::EnqueueInputs(Stream& stream, JobHoldings& holdings,
                                    const JobPayload& payload) {
  absl::Status status;
  if (holdings.upload_begin != nullptr) status = stream.Record(*holdings.upload_begin);
  if (!status.ok()) return status;
  for (const Role role : kRoles) {
    const JobInput& input = holdings[role];
    if (const auto& upload = payload.uploads[role]; upload != nullptr) {
      status = stream.Wait(upload->last_copy());
    } else if (input.payload && !zero_copy_.payload) {
      const StagedOperand& staged = payload_layout_[role];
      status = stream.Upload(payload.block.data() + staged.offset, input.memory->pitched(), 0,
                             staged.dense_bytes());
    } else if (input.generator.has_value()) {
      status = stream.Generate(*input.generator, input.memory->generator_target(), stop_flag());
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

gemm::Operands JobImpl::OperandsOf(Launched& launched) const {
  JobHoldings& holdings = *launched.holdings;
  OperandMemories inputs;
  for (const Role role : kRoles) {
    OperandMemory& operand = inputs[role];
    operand = MemoryOf(holdings[role].memory);
    if (holdings[role].payload && zero_copy_.payload) {
      operand.data = launched.payload.block.data() + payload_layout_[role].offset;
    }
  }
  OperandMemory result = MemoryOf(holdings.result);
  if (launched.result_block && zero_copy_.result) result.data = launched.result_block.data();
  return BindOperands(admitted_.plan, inputs, result);
}

absl::Status JobImpl::EnqueueKernel(Launched& launched, const KernelPick& pick) {
  Stream& stream = *launched.lease;
  JobHoldings& holdings = *launched.holdings;
  const Plan& plan = admitted_.plan;
  const gemm::Operands operands = OperandsOf(launched);
  absl::Status status;
  if (!launched.piece.more()) status = stream.Record(*holdings.kernel_begin);
  if (!status.ok()) return status;
  if (admitted_.check.plan.has_value()) return EnqueueChecked(stream, holdings, pick, operands);
  const gemm::Workspace workspace{holdings.workspace.data(), holdings.workspace.bytes()};
  status = stream.Launch(
      *pick.kernel, plan.problem, operands, workspace, pick.params,
      {.transposed = holdings.transposed.get(), .piece = &launched.piece, .stop = stop_flag()});
  if (!status.ok() || launched.piece.more()) return status;
  return stream.Record(*holdings.kernel_end);
}

}  // namespace gemmd
