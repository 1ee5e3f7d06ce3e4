// Text of callers in messages.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace gemm {

// `text` as a message repeats it: in double quotes, every byte that is not
// printable ASCII, and quotes and backslashes, escaped as in C. Longer than 64
// bytes, the first of them and how many there are:
// "abc", "a\x1b[2J", "aaaa..." (20000 bytes).
std::string Quoted(absl::string_view text);

// `text` with every byte that is not printable ASCII escaped, cut where it would
// pass `max_bytes`: a whole message, whatever it was made of.
std::string Printable(absl::string_view text, size_t max_bytes);

// `text`, which may be UTF-8, with control characters escaped: for a terminal.
std::string EscapeControls(absl::string_view text);

}  // namespace gemm
