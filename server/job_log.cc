#include "server/job_log.h"

#include "server/logging.h"

namespace gemmd {

void JobLog::OnJobEnd(const JobReport& report, const absl::Status& outcome) {
  if (LogEnabled(LogLevel::kDebug)) {
    const PhaseDurations& phases = report.phases;
    Log(LogLevel::kDebug, "job",
        {{"code", absl::StatusCodeToString(outcome.code())},
         {"error", outcome.message()},
         {"kernel", report.kernel},
         {"device", report.device},
         {"m", report.m},
         {"n", report.n},
         {"k", report.k},
         {"type", gemm::Name(report.types.a)},
         {"copies", report.copies.size()},
         {"bytes_in", report.bytes_in},
         {"bytes_out", report.bytes_out},
         {"receive_seconds", absl::ToDoubleSeconds(phases.receive)},
         {"queue_seconds", absl::ToDoubleSeconds(phases.queue)},
         {"kernel_seconds", absl::ToDoubleSeconds(phases.kernel)},
         {"total_seconds", absl::ToDoubleSeconds(phases.total)}});
  }
  next_.OnJobEnd(report, outcome);
}

void JobLog::OnTransferEnd(bool upload, uint64_t bytes, absl::Duration elapsed,
                           const absl::Status& outcome) {
  if (LogEnabled(LogLevel::kDebug)) {
    Log(LogLevel::kDebug, upload ? "upload" : "download",
        {{"code", absl::StatusCodeToString(outcome.code())},
         {"error", outcome.message()},
         {"bytes", bytes},
         {"seconds", absl::ToDoubleSeconds(elapsed)}});
  }
  next_.OnTransferEnd(upload, bytes, elapsed, outcome);
}

}  // namespace gemmd
