#include "server/engine/transfer/upload_impl.h"

#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/engine/core/guards.h"

namespace gemmd {
namespace {

// The bytes that the call brings, checked against the matrix.
absl::StatusOr<ByteSpan> RangeOf(const UploadSpec& spec) {
  const uint64_t all = spec.shape.dense_bytes();
  if (!spec.range.has_value()) return ByteSpan{0, all};
  if (spec.upload_id.empty()) {
    return absl::InvalidArgumentError("range needs upload_id: only a split upload has ranges");
  }
  if (absl::Status status = CheckRange(*spec.range, all); !status.ok()) return status;
  return *spec.range;
}

absl::Status CheckSpec(const UploadSpec& spec) {
  absl::Status status = CheckShape(spec.shape, "shape");
  if (!status.ok()) return status;
  if (spec.deadline <= SteadyNow()) {
    return absl::DeadlineExceededError("the deadline passed before the upload began");
  }
  if (!spec.generator.has_value()) return absl::OkStatus();
  if (!spec.upload_id.empty()) {
    return absl::InvalidArgumentError("generator and upload_id exclude each other");
  }
  return CheckGenerator(spec.shape, "generator");
}

}  // namespace

absl::StatusOr<std::shared_ptr<UploadImpl>> UploadImpl::Begin(EngineCore& core, UploadSpec spec,
                                                              UploadDone done) {
  absl::Status status = CheckSpec(spec);
  if (!status.ok()) return status;
  const absl::StatusOr<ByteSpan> range = RangeOf(spec);
  if (!range.ok()) return range.status();
  absl::StatusOr<AdmissionTicket> ticket = core.admission->AdmitTransfer();
  if (!ticket.ok()) return ticket.status();
  absl::StatusOr<std::shared_ptr<UploadGroup>> group = core.uploads->Join(spec, *range);
  if (!group.ok()) return group.status();
  auto upload = std::make_shared<UploadImpl>(core, std::move(spec), *range, *std::move(ticket),
                                             *group, std::move(done));
  status = (*group)->AddMember(upload);
  if (!status.ok()) return status;
  return upload;
}

UploadImpl::UploadImpl(EngineCore& core, UploadSpec spec, ByteSpan range, AdmissionTicket ticket,
                       std::shared_ptr<UploadGroup> group, UploadDone done)
    : core_(core),
      spec_(std::move(spec)),
      range_(range),
      arrived_(SteadyNow()),
      device_index_(group->device_index()),
      work_({.types = {.a = spec_.shape.type,
                       .b = spec_.shape.type,
                       .d = spec_.shape.type,
                       .compute = gemm::Compute::kF32},
             .bytes = static_cast<double>(spec_.shape.pitched_bytes()),
             .caller = absl::HashOf(spec_.flow)}) {
  MutexLock lock(mutex_);
  ticket_ = std::move(ticket);
  group_ = std::move(group);
  done_ = std::move(done);
}

void UploadImpl::Start() {
  // Lost or cancelled before this was registered: nobody else ends it.
  absl::Status ended = deadline_guard_.Begin(core_, weak_from_this(), spec_.deadline);
  ended.Update(device().Health());
  if (!ended.ok()) return Cancel(std::move(ended));
  if (spec_.generator.has_value()) {
    const StreamClaim claim{.flow = spec_.flow,
                            .weight = spec_.quota == nullptr ? 1 : spec_.quota->weight,
                            .cost = core_.costs[device_index_]->Estimate(work_),
                            .deadline = spec_.deadline};
    absl::Status status = core_.schedulers[device_index_]->Submit(shared_from_this(), claim);
    if (!status.ok()) Cancel(std::move(status));
    return;
  }
  MutexLock lock(mutex_);
  if (group_ == nullptr) return;
  const std::shared_ptr<MatrixMemory> memory = group_->memory();
  if (memory == nullptr) return;  // the group failed, and cancels this call
  upload_ = std::make_shared<PayloadUpload>("matrix", memory, range_.offset,
                                            range_.offset + range_.length, *core_.workers,
                                            [self = shared_from_this()](absl::Status status) {
                                              if (!status.ok())
                                                return self->Cancel(std::move(status));
                                              self->OnCopied();
                                            });
}

void UploadImpl::OnCopied() {
  {
    MutexLock lock(mutex_);
    copied_ = true;
    if (!payload_ended_) return;
  }
  NotifyLanded();
}

void UploadImpl::Run(StreamLease lease) {
  std::shared_ptr<MatrixMemory> memory = Target();
  if (memory == nullptr) return;  // ended while it waited
  Stream& stream = *lease;
  HangGuard guard(core_, device_index_, WorkOf(spec_.shape));
  absl::Status enqueued = stream.Generate(*spec_.generator, memory->generator_target(),
                                          StopFlag(shared_from_this(), &stopped_));
  stream.Notify([self = shared_from_this(), memory = std::move(memory), lease = std::move(lease),
                 guard = std::move(guard),
                 enqueued = std::move(enqueued)](absl::Status status) mutable {
    guard.End();
    status.Update(enqueued);
    memory.reset();
    const absl::Duration device_time = lease.Reset();
    if (status.ok()) self->core_.costs[self->device_index_]->Observe(self->work_, device_time);
    self->OnLanded(status);
  });
}

std::shared_ptr<MatrixMemory> UploadImpl::Target() {
  MutexLock lock(mutex_);
  return group_ == nullptr ? nullptr : group_->memory();
}

void UploadImpl::NotifyLanded() {
  std::shared_ptr<MatrixMemory> memory = Target();
  if (memory == nullptr) return;
  Stream& stream = memory->device->upload_stream();
  stream.Notify(
      [self = shared_from_this(), memory = std::move(memory)](absl::Status status) mutable {
        memory.reset();
        self->OnLanded(status);
      });
}

void UploadImpl::OnLanded(const absl::Status& status) {
  if (!status.ok()) return Cancel(status);
  std::shared_ptr<UploadGroup> group;
  {
    MutexLock lock(mutex_);
    group = group_;
  }
  if (group == nullptr) return;
  absl::StatusOr<UploadResult> result = group->Land(range_);
  if (result.ok()) {
    result->elapsed = SteadyNow() - arrived_;
    if (spec_.generator.has_value()) result->bytes = 0;
  }
  End(std::move(result));
}

void UploadImpl::Append(uint64_t offset, absl::Cord bytes, absl::AnyInvocable<void()> consumed) {
  std::shared_ptr<PayloadUpload> upload;
  std::shared_ptr<UploadGroup> group;
  {
    MutexLock lock(mutex_);
    upload = upload_;
    group = group_;
  }
  absl::Status status;
  if (group != nullptr && spec_.generator.has_value()) {
    status = absl::InvalidArgumentError("a chunk came, but the matrix is generated");
  }
  if (upload == nullptr || group == nullptr) {
    if (consumed) consumed();
  } else {
    const uint64_t size = bytes.size();
    group->Received(size);
    status = upload->Append(offset, std::move(bytes),
                            [group, size, consumed = std::move(consumed)]() mutable {
                              group->Consumed(size);
                              if (consumed) consumed();
                            });
  }
  if (!status.ok()) Cancel(std::move(status));
}

void UploadImpl::EndOfPayload() {
  std::shared_ptr<PayloadUpload> upload;
  {
    MutexLock lock(mutex_);
    upload = upload_;
  }
  if (upload == nullptr) return;
  absl::Status status = upload->CheckComplete();
  if (!status.ok()) return Cancel(std::move(status));
  {
    MutexLock lock(mutex_);
    if (std::exchange(payload_ended_, true) || !copied_) return;
  }
  NotifyLanded();
}

void UploadImpl::Cancel(absl::Status why) { End(std::move(why)); }

void UploadImpl::End(absl::StatusOr<UploadResult> result) {
  AdmissionTicket ticket;
  std::shared_ptr<UploadGroup> group;
  std::shared_ptr<PayloadUpload> upload;
  UploadDone done;
  {
    MutexLock lock(mutex_);
    if (group_ == nullptr) return;
    stopped_ = true;
    group = std::exchange(group_, nullptr);
    upload = std::exchange(upload_, nullptr);
    ticket = std::move(ticket_);
    done = std::exchange(done_, nullptr);
  }
  if (upload != nullptr) upload->Abort();
  if (spec_.generator.has_value()) core_.schedulers[device_index_]->Withdraw(this);
  if (!result.ok()) group->Fail(result.status());
  group.reset();
  deadline_guard_.End(core_);
  ticket.Reset();
  if (core_.observer != nullptr) {
    core_.observer->OnTransferEnd(/*upload=*/true, result.ok() ? result->bytes : 0,
                                  SteadyNow() - arrived_, result.status());
  }
  done(std::move(result));
}

}  // namespace gemmd
