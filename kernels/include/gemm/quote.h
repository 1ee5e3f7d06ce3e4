// Escapes callers' text for messages.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace gemm {

// `text` in double quotes. Quotes, backslashes and bytes that are not printable ASCII are
// escaped as in C. Text of more than 64 bytes is cut, and its length added:
// "abc", "a\x1b[2J", "aaaa..." (20000 bytes).
std::string Quoted(absl::string_view text);

// A whole message: `text` with every byte that is not printable ASCII escaped, cut to
// `max_bytes`.
std::string Printable(absl::string_view text, size_t max_bytes);

// `text`, which may be UTF-8, with control characters escaped: for a terminal.
std::string EscapeControls(absl::string_view text);

}  // namespace gemm
