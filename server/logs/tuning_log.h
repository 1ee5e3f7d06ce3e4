// What the log says of tuning tables, and of what was measured before the first call.
#pragma once

#include "absl/status/statusor.h"
#include "server/benchmark/first_times.h"
#include "server/engine/core/report.h"

namespace gemmd {

// At the start: what the devices can use of --tuning-tables; nothing where there is none.
void LogTuning(const TuningLoad& load);

// What became of them when they were read again.
void LogTuningReload(const absl::StatusOr<TuningLoad>& load);

void LogFirstTimes(const FirstTimes& times);

}  // namespace gemmd
