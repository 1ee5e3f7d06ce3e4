// Reads tuning tables from files.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/tuning.h"

namespace gemmd {

// `paths`: files with commas between them, or nothing; after them that of ReadIdleTuning. For the
// same product on the same machine a later file's entry counts. INVALID_ARGUMENT names the flag
// and the file, and in it the line, the field, the value and what is allowed.
absl::StatusOr<gemm::TuningTable> ReadTuningTables(absl::string_view paths,
                                                   const std::string& idle_tuning);

// The file of --idle-tuning. No entries where there is no such file, or `path` is empty. Errors as
// above.
absl::StatusOr<gemm::TuningTable> ReadIdleTuning(const std::string& path);

}  // namespace gemmd
