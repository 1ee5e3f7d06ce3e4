// The lines of the files of callers and quotas.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gemmd {

// The bounds of either file: its lines that have something in them, and its bytes.
inline constexpr size_t kMaxFileLines = 10'000;
inline constexpr size_t kMaxFileBytes = 4 << 20;

// Calls `take` with each line that has something in it, at most kMaxFileLines. A line comes without
// its comment, which begins at the line's start or after white space, and without the white space
// around it. INVALID_ARGUMENT names the line; `what` names the content of a line.
absl::Status ForEachLine(absl::string_view text, absl::string_view what,
                         absl::FunctionRef<absl::Status(absl::string_view)> take);

// INVALID_ARGUMENT for a text whose last line has no newline: a file that somebody still
// writes may be cut anywhere.
absl::Status CheckLastLine(absl::string_view text);

}  // namespace gemmd
