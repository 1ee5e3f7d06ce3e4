#include "server/logs/job_log.h"

#include <optional>

#include "server/base/clock.h"
#include "server/logs/logging.h"
#include "server/logs/tuning_log.h"

namespace gemmd {
namespace {

// A caller makes as many unlikely products as it likes, and the jobs of a lost device fail
// together.
constexpr LineLimitOptions kFewLines = {.lines = 100, .period = absl::Minutes(1)};

// A job that ended before a kernel was chosen may not have had types either.
absl::string_view TypeOf(const JobReport& report) {
  return report.kernel.empty() ? "" : gemm::Name(report.types.a);
}

}  // namespace

JobLog::JobLog(EngineObserver& next) : next_(next), unlikely_(kFewLines), failed_(kFewLines) {}

// Products that another kernel had to compute again.
void JobLog::LogCheck(const JobReport& report, const absl::Status& outcome) {
  const CheckReport& check = report.check;
  if (check.failed_kernel.empty()) return;
  const bool wrong = check.result == CheckResult::kWrong || check.result == CheckResult::kLost;
  const std::optional<int64_t> left_out = wrong ? 0 : unlikely_.Take(SteadyNow());
  if (!left_out.has_value()) return;
  const char* const message =
      check.result == CheckResult::kLost ? "two kernels gave a wrong product"
      : wrong                            ? "a kernel gave a wrong product; another's was delivered"
      : check.result == CheckResult::kSuspect
          ? "a product was unlikely; another kernel's was delivered"
          : "an unlikely product of unusual operands; another kernel's was delivered";
  Log(wrong ? LogLevel::kError : LogLevel::kWarning, message,
      {{"kernel", check.failed_kernel},
       {"delivered", check.result == CheckResult::kLost ? "none" : report.kernel},
       {"device", report.device},
       {"m", report.m},
       {"n", report.n},
       {"k", report.k},
       {"type", gemm::Name(report.types.a)},
       {"of_bound", check.failed_of_bound},
       {"error", outcome.message()},
       {"left_out", *left_out}});
}

// Jobs that the server failed, and not its callers. LogCheck says so of wrong products.
void JobLog::LogFailure(const JobReport& report, const absl::Status& outcome) {
  if (report.check.result == CheckResult::kLost) return;
  switch (outcome.code()) {
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnknown:
      break;
    default:
      return;
  }
  const std::optional<int64_t> left_out = failed_.Take(SteadyNow());
  if (!left_out.has_value()) return;
  Log(LogLevel::kError, "job failed",
      {{"code", absl::StatusCodeToString(outcome.code())},
       {"error", outcome.message()},
       {"kernel", report.kernel},
       {"device", report.device},
       {"m", report.m},
       {"n", report.n},
       {"k", report.k},
       {"type", TypeOf(report)},
       {"left_out", *left_out}});
}

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
         {"products", report.products()},
         {"type", TypeOf(report)},
         {"copies", report.copies.size()},
         {"bytes_in", report.bytes_in},
         {"bytes_out", report.bytes_out},
         {"receive_seconds", absl::ToDoubleSeconds(phases.receive)},
         {"queue_seconds", absl::ToDoubleSeconds(phases.queue)},
         {"kernel_seconds", absl::ToDoubleSeconds(phases.kernel)},
         {"check", Name(report.check.result)},
         {"total_seconds", absl::ToDoubleSeconds(phases.total)}});
  }
  LogCheck(report, outcome);
  LogFailure(report, outcome);
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

void JobLog::OnDeviceLost(const DeviceLoss& loss) {
  Log(LogLevel::kError, "device lost",
      {{"device", loss.device},
       {"reason", loss.why.message()},
       {"matrices_lost", loss.matrices_lost},
       {"matrices_moved", loss.matrices_moved}});
  next_.OnDeviceLost(loss);
}

void JobLog::OnTuningReload(const absl::StatusOr<TuningLoad>& load) {
  LogTuningReload(load);
  next_.OnTuningReload(load);
}

}  // namespace gemmd
