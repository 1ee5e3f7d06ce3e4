#include "server/logs/tuning_log.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/logs/logging.h"

namespace gemmd {
namespace {

void LogLoad(const char* message, const TuningLoad& load) {
  Log(LogLevel::kInfo, message,
      {{"entries", load.entries}, {"used", load.used}, {"of_other_versions", load.other_versions}});
  if (load.skipped.empty()) return;
  constexpr size_t kShown = 8;
  const auto end = load.skipped.begin() + std::min(kShown, load.skipped.size());
  Log(LogLevel::kWarning, "kernels of the tuning tables that this server cannot run are skipped",
      {{"count", load.skipped.size()},
       {"kernels", absl::StrJoin(load.skipped.begin(), end, ", ")}});
}

}  // namespace

void LogTuning(const TuningLoad& load) {
  if (load.entries > 0) LogLoad("tuning tables", load);
}

void LogTuningReload(const absl::StatusOr<TuningLoad>& load) {
  if (load.ok()) return LogLoad("tuning tables read again", *load);
  Log(LogLevel::kError, "tuning tables not taken; what was read before stays in force",
      {{"reason", load.status().message()}});
}

void LogFirstTimes(const FirstTimes& times) {
  if (!times.status.ok()) {
    return Log(LogLevel::kWarning, "kernels not measured: formulas and ranks choose them",
               {{"device", times.device}, {"reason", times.status.message()}});
  }
  Log(LogLevel::kInfo, "kernels measured",
      {{"device", times.device},
       {"products", times.products},
       {"seconds", absl::ToDoubleSeconds(times.elapsed)}});
}

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
