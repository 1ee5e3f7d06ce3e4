// Reads tuning tables from files.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/tuning.h"

namespace gemmd {

// `paths`: files with commas between them, or nothing. For the same product on the same
// machine a later file's entry counts. INVALID_ARGUMENT names the flag and the file, and in
// it the line, the field, the value and what is allowed.
absl::StatusOr<gemm::TuningTable> ReadTuningTables(absl::string_view paths);

}  // namespace gemmd
