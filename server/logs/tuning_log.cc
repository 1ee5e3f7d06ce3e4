#include "server/logs/tuning_log.h"

#include <algorithm>

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

}  // namespace gemmd
