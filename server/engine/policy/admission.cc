#include "server/engine/policy/admission.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/clock.h"
#include "server/engine/bounds/bound_error.h"

namespace gemmd {
namespace {

absl::Status Draining() {
  return absl::UnavailableError("the server is draining: call another one");
}

}  // namespace

AdmissionTicket& AdmissionTicket::operator=(AdmissionTicket&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  admission_ = std::exchange(other.admission_, nullptr);
  jobs_ = other.jobs_;
  bytes_ = other.bytes_;
  caller_ = std::move(other.caller_);
  return *this;
}

void AdmissionTicket::Reset() {
  if (Admission* admission = std::exchange(admission_, nullptr)) admission->Return(*this);
}

Admission::Admission(const EngineOptions& options)
    : max_job_bytes_(options.max_job_bytes),
      max_admitted_bytes_(options.max_admitted_bytes),
      max_jobs_(options.max_jobs) {}

absl::StatusOr<AdmissionTicket> Admission::AdmitJob(uint64_t bytes, const CallerQuotaPtr& quota) {
  if (bytes > max_job_bytes_) {
    return BoundError(
        {.bound = "max-job-bytes"},
        absl::StrCat("the job needs ", bytes, " bytes of device memory, but one job may take ",
                     max_job_bytes_, " (--max-job-bytes): split the product"));
  }
  MutexLock lock(mutex_);
  if (absl::Status status = CheckJob(bytes, quota); !status.ok()) return status;
  ++jobs_;
  ++tickets_;
  ++arrived_;
  bytes_ += bytes;
  AdmissionTicket ticket;
  ticket.admission_ = this;
  ticket.jobs_ = 1;
  ticket.bytes_ = bytes;
  if (quota != nullptr) ticket.caller_ = quota->caller;
  callers_.Add(ticket.caller_, bytes);
  return ticket;
}

absl::Status Admission::CheckJob(uint64_t bytes, const CallerQuotaPtr& quota) const {
  if (closed_) return Draining();
  if (quota != nullptr) {
    absl::Status status =
        callers_.Check(quota->caller, {.count_bound = "jobs",
                                       .bytes_bound = "admitted-bytes",
                                       .most = quota->jobs,
                                       .most_bytes = quota->admitted_bytes,
                                       .bytes = bytes,
                                       .passes = true,
                                       .what_to_do = "try again when some jobs have ended"});
    if (!status.ok()) return status;
  }
  if (jobs_ >= max_jobs_) {
    return BoundError(
        {.bound = "max-jobs", .retry_after = kRetrySoon},
        absl::StrCat("the server has ", jobs_,
                     " jobs, its limit (--max-jobs): try again when some have ended"));
  }
  if (bytes <= max_admitted_bytes_ - bytes_) return CheckReserve(bytes, quota);
  return BoundError(
      {.bound = "max-admitted-bytes",
       .retry_after = bytes <= max_admitted_bytes_ ? std::optional(kRetrySoon) : std::nullopt},
      absl::StrCat("the job needs ", bytes, " bytes of device memory and other jobs have ", bytes_,
                   " of at most ", max_admitted_bytes_,
                   " (--max-admitted-bytes): try again when some have ended"));
}

absl::Status Admission::CheckReserve(uint64_t bytes, const CallerQuotaPtr& quota) const {
  if (quota == nullptr || quota->caller.empty()) return absl::OkStatus();
  const CallerShare own = callers_.of(quota->caller);
  const int jobs = max_jobs_ / kReservedShare;
  if (own.count >= jobs && jobs_ >= max_jobs_ - jobs) {
    return BoundError(
        {.bound = "max-jobs", .retry_after = kRetrySoon},
        absl::StrCat("the server has ", jobs_, " jobs of at most ", max_jobs_,
                     " (--max-jobs), and the last ", jobs,
                     " are for callers with fewer than that, but ", CallerHas(quota->caller), " ",
                     own.count, ": try again when some have ended"));
  }
  const uint64_t reserved = max_admitted_bytes_ / kReservedShare;
  const uint64_t would_have = static_cast<uint64_t>(own.bytes) + bytes;
  // A job that is larger than the rest runs alone.
  if (would_have <= reserved || bytes_ == 0 || bytes_ + bytes <= max_admitted_bytes_ - reserved) {
    return absl::OkStatus();
  }
  return BoundError(
      {.bound = "max-admitted-bytes", .retry_after = kRetrySoon},
      absl::StrCat("the job needs ", bytes, " bytes of device memory and all jobs have ", bytes_,
                   " of at most ", max_admitted_bytes_, " (--max-admitted-bytes), the last ",
                   reserved, " of which are for callers with fewer than that, but ",
                   CallerHas(quota->caller), " ", own.bytes, ": try again when some have ended"));
}

absl::StatusOr<AdmissionTicket> Admission::AdmitTransfer() {
  MutexLock lock(mutex_);
  if (closed_) return Draining();
  return Transfer();
}

absl::StatusOr<AdmissionTicket> Admission::AdmitDownload() {
  MutexLock lock(mutex_);
  if (downloads_closed_ || (closed_ && jobs_ == 0 && SteadyNow() >= fetched_until_)) {
    return Draining();
  }
  return Transfer();
}

void Admission::OnResultKept() {
  MutexLock lock(mutex_);
  if (!downloads_closed_) fetched_until_ = SteadyNow() + kTimeToFetch;
}

AdmissionTicket Admission::Transfer() {
  ++tickets_;
  ++arrived_;
  AdmissionTicket ticket;
  ticket.admission_ = this;
  return ticket;
}

void Admission::Return(const AdmissionTicket& ticket) {
  MutexLock lock(mutex_);
  jobs_ -= ticket.jobs_;
  bytes_ -= ticket.bytes_;
  if (ticket.jobs_ > 0) callers_.Remove(ticket.caller_, ticket.bytes_);
  if (--tickets_ == 0) idle_.NotifyAll();
}

absl::StatusOr<uint64_t> Admission::Register(std::weak_ptr<Cancellable> running) {
  MutexLock lock(mutex_);
  if (!cancelled_.ok()) return cancelled_;
  running_.emplace(next_id_, std::move(running));
  return next_id_++;
}

void Admission::Unregister(uint64_t id) {
  MutexLock lock(mutex_);
  running_.erase(id);
}

void Admission::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
}

void Admission::CloseDownloads() {
  MutexLock lock(mutex_);
  downloads_closed_ = true;
  fetched_until_ = absl::InfinitePast();
}

bool Admission::WaitIdle(absl::Time deadline) {
  MutexLock lock(mutex_);
  for (;;) {
    const absl::Time now = SteadyNow();
    if (tickets_ == 0 && now >= std::min(fetched_until_, deadline)) return true;
    if (now >= deadline) return false;
    idle_.WaitUntil(mutex_, tickets_ == 0 ? std::min(fetched_until_, deadline) : deadline);
  }
}

std::vector<std::shared_ptr<Cancellable>> Admission::Running() {
  std::vector<std::shared_ptr<Cancellable>> running;
  MutexLock lock(mutex_);
  for (const auto& [id, weak] : running_) {
    if (std::shared_ptr<Cancellable> strong = weak.lock()) running.push_back(std::move(strong));
  }
  return running;
}

void Admission::CancelAll(const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    cancelled_.Update(why);
  }
  for (const std::shared_ptr<Cancellable>& one : Running()) one->Cancel(why);
}

void Admission::CancelOn(const Device& device, const absl::Status& why) {
  for (const std::shared_ptr<Cancellable>& one : Running()) {
    if (one->Needs(device)) one->Cancel(why);
  }
}

CallerShare Admission::share_of(absl::string_view caller) const {
  MutexLock lock(mutex_);
  return callers_.of(caller);
}

EngineActivity Admission::activity() const {
  MutexLock lock(mutex_);
  return {arrived_, tickets_};
}

Gauge Admission::jobs() const {
  MutexLock lock(mutex_);
  return {jobs_, max_jobs_};
}

Gauge Admission::admitted_bytes() const {
  MutexLock lock(mutex_);
  return {static_cast<int64_t>(bytes_), static_cast<int64_t>(max_admitted_bytes_)};
}

}  // namespace gemmd
