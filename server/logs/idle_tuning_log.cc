#include "server/logs/idle_tuning_log.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/logs/logging.h"

namespace gemmd {

void IdleTuningLog::OnProduct(const IdleTuningReport& report) {
  metrics_.OnIdleTuningProduct(Name(report.outcome));
  const std::string product = TextOf(report.product);
  if (report.outcome == IdleTuningOutcome::kTuned) {
    const double faster = report.before_seconds.value_or(0) / report.choice.seconds;
    return Log(
        LogLevel::kInfo, "tuned while idle",
        {{"product", product},
         {"kernel", report.choice.kernel},
         {"seconds", report.choice.seconds},
         {"times_as_fast", report.before_seconds.has_value() ? absl::StrCat(faster) : "unknown"}});
  }
  const bool failed = report.outcome == IdleTuningOutcome::kFailed;
  Log(failed ? LogLevel::kWarning : LogLevel::kDebug, "not tuned while idle",
      {{"product", product}, {"outcome", Name(report.outcome)}, {"reason", report.why.message()}});
}

void IdleTuningLog::OnUnwritten(const absl::Status& why) {
  metrics_.OnIdleTuningUnwritten();
  if (told_) return;
  told_ = true;
  Log(LogLevel::kError, "what idle tuning finds cannot be written; it goes on",
      {{"reason", why.message()}});
}

}  // namespace gemmd
