// The second half of JobImpl: from the kernel's end to the job's.
#include <algorithm>
#include <utility>

#include "gemm/scalars.h"
#include "server/base/clock.h"
#include "server/engine/job/job_impl.h"

namespace gemmd {
namespace {

// Whether measuring could give products like this one another kernel. That is so if the choice was
// left open, the tables in force have no entry made for them, and `gemmctl tune` measures such
// products.
bool IsWorthTuning(const EngineCore& core, const AdmittedJob& job, const JobReport& report) {
  if (!RulesOf(job.plan.form).tuned) return false;
  if (report.flops == 0 || !job.spec.kernel.family.empty()) return false;
  if (report.check.before_activation) return false;  // the check asks for the rank's kernel
  switch (report.rule) {
    case ChoiceRule::kRank:
    case ChoiceRule::kEstimate:
    case ChoiceRule::kTableNear:
    case ChoiceRule::kTableExact:
      break;
    case ChoiceRule::kNone:
    case ChoiceRule::kRequest:
    case ChoiceRule::kCheck:
      return false;
  }
  const std::shared_ptr<const Tuning> tuning = core.tuning.Get();
  const TunedKernels* const tuned = tuning->For(job.device_index);
  return tuned == nullptr || !tuned->Measured(job.plan.WholeProblem());
}

}  // namespace

void JobImpl::TellDeviceTime(absl::Duration time) const {
  if (core_.observer == nullptr) return;
  const CallerQuotaPtr& quota = admitted_.spec.quota;
  core_.observer->OnDeviceTime(quota == nullptr ? "" : quota->caller, time);
}

void JobImpl::OnComputed(absl::Status status, Computed computed) {
  TellDeviceTime(computed.device_time);
  computed.holdings->work.End();
  if (!status.ok()) {
    computed.Release();
    return Fail(std::move(status));
  }
  JobHoldings& holdings = *computed.holdings;
  {
    MutexLock lock(mutex_);
    // A product that was computed twice says nothing of such jobs.
    if (report_.check.failed_kernel.empty()) {
      core_.costs[admitted_.device_index]->Observe(admitted_.work, computed.device_time);
    }
    if (holdings_ == nullptr) return;
    PhaseDurations& phases = report_.phases;
    phases.host_to_device = UploadTime(holdings);
    report_.jobs_in_launch = computed.jobs;
    phases.kernel = computed.jobs > 1
                        ? computed.kernel_time
                        : device().Elapsed(*holdings.kernel_begin, *holdings.kernel_end);
    if (holdings.transposed != nullptr) {
      phases.transpose = device().Elapsed(*holdings.kernel_begin, *holdings.transposed);
    }
    if (holdings.check_end != nullptr) {
      phases.check = device().Elapsed(*holdings.kernel_end, *holdings.check_end);
    }
    // Without a product there is no speed to speak of.
    const gemm::Problem& problem = admitted_.plan.problem;
    report_.flops = gemm::RoundScalars(problem).alpha == 0 ? 0 : gemm::Flops(problem);
    report_.device_time = computed.device_time;
    where_ = "while the result was sent";
    for (const auto& upload : uploads_) {
      if (upload != nullptr) upload->Abort();  // lets go of its operand
    }
  }
  // The operands have served; a resident one may be deleted for good by now.
  for (JobInput& input : holdings.inputs) input = JobInput();
  holdings.workspace.Reset();
  holdings.check_memory.Reset();
  if (!admitted_.spec.stream_result) {
    computed.Release();
    return Complete(DownloadTimes());
  }
  SendResult(std::move(computed));
}

// From the first copy to the last one, and from the first generator to the kernel's start: between
// the two, the job waits for its stream. Nothing was copied where all operands are resident. The
// copies of a small payload are not timed: a record costs the device's thread as much as a copy.
absl::Duration JobImpl::UploadTime(const JobHoldings& holdings) {
  absl::Duration time;
  for (const std::shared_ptr<PayloadUpload>& first : uploads_) {
    for (const std::shared_ptr<PayloadUpload>& last : uploads_) {
      if (first == nullptr || last == nullptr) continue;
      time = std::max(time, device().Elapsed(first->first_copy(), last->last_copy()));
    }
  }
  if (holdings.upload_begin != nullptr) {
    time += device().Elapsed(*holdings.upload_begin, *holdings.kernel_begin);
  }
  return time;
}

void JobImpl::SendResult(Computed computed) {
  const std::shared_ptr<MatrixMemory>& d = computed.holdings->result;
  auto download = std::make_shared<ResultDownload>(
      d, 0, d->shape.dense_bytes(), admitted_.spec.receiver, *core_.answers,
      [self = shared_from_this()](ResultPiece piece) {
        std::shared_ptr<JobListener> listener;
        {
          MutexLock lock(self->mutex_);
          listener = self->listener_;
          self->report_.bytes_out += piece.bytes.size();
        }
        if (listener == nullptr || !self->gate_.Enter()) return;
        listener->OnResult(std::move(piece));
        self->gate_.Leave();
      },
      [self = shared_from_this()](absl::StatusOr<DownloadTimes> times) {
        if (times.ok()) return self->Complete(*times);
        self->Fail(times.status());
      });
  {
    MutexLock lock(mutex_);
    if (holdings_ == nullptr) return;
    download_ = download;
  }
  computed.holdings.reset();  // Complete lets go of everything before it says so
  if (computed.result_block) {
    download->StartStaged(std::move(computed.result_block));
  } else {
    download->Start();
  }
}

std::shared_ptr<JobHoldings> JobImpl::TakeHoldings() {
  ByRole<std::shared_ptr<PayloadUpload>> uploads;
  std::shared_ptr<ResultDownload> download;
  SmallPayload small_payload;
  std::shared_ptr<JobHoldings> holdings;
  bool launched = false;
  {
    MutexLock lock(mutex_);
    holdings = std::exchange(holdings_, nullptr);
    if (holdings == nullptr) return nullptr;
    stopped_ = true;
    launched = launched_;
    std::swap(uploads, uploads_);
    download.swap(download_);
    small_payload = std::exchange(small_payload_, SmallPayload());
    report_.phases.total = SteadyNow() - arrived_;
    report_.bytes_in = received_bytes_;
  }
  for (const std::shared_ptr<PayloadUpload>& upload : uploads) {
    if (upload != nullptr) upload->Abort();
  }
  if (download != nullptr) download->Abort();
  if (!launched) core_.schedulers[admitted_.device_index]->Withdraw(this);
  deadline_guard_.End(core_);
  return holdings;
}

void JobImpl::Complete(const DownloadTimes& times) {
  {
    MutexLock lock(mutex_);
    report_.phases.device_to_host = times.device_to_host;
    report_.phases.send = times.send;
  }
  std::shared_ptr<JobHoldings> holdings = TakeHoldings();
  if (holdings == nullptr) return;
  JobResult result;
  std::shared_ptr<JobListener> listener;
  {
    MutexLock lock(mutex_);
    result.report = std::move(report_);
    listener = std::move(listener_);
  }
  absl::Status outcome;
  if (holdings->room) {
    absl::StatusOr<MatrixRecord> kept =
        core_.store->Add(std::move(holdings->room), holdings->result);
    outcome = kept.status();
    if (kept.ok()) {
      result.kept = *std::move(kept);
      core_.admission->OnResultKept();
    }
  }
  holdings.reset();  // whoever hears of the end finds nothing of the job left
  if (IsWorthTuning(core_, admitted_, result.report)) {
    core_.traffic.Add(gemm::TunedProduct::Of(admitted_.plan.WholeProblem()),
                      absl::ToDoubleSeconds(result.report.phases.kernel));
  }
  if (core_.observer != nullptr) core_.observer->OnJobEnd(result.report, outcome);
  gate_.Close([listener = std::move(listener), result = std::move(result),
               outcome = std::move(outcome)]() mutable {
    if (!outcome.ok()) return listener->OnDone(std::move(outcome));
    listener->OnDone(std::move(result));
  });
}

void JobImpl::Fail(absl::Status why) {
  std::shared_ptr<JobHoldings> holdings = TakeHoldings();
  if (holdings == nullptr) return;
  JobReport report;
  std::shared_ptr<JobListener> listener;
  {
    MutexLock lock(mutex_);
    report = std::move(report_);
    listener = std::move(listener_);
  }
  holdings.reset();
  if (core_.observer != nullptr) core_.observer->OnJobEnd(report, why);
  gate_.Close([listener = std::move(listener), why = std::move(why)]() mutable {
    listener->OnDone(std::move(why));
  });
}

void JobImpl::Cancel(absl::Status why) { Fail(std::move(why)); }

}  // namespace gemmd
