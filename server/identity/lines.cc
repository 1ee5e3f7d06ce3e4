#include "server/identity/lines.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gemmd {
namespace {

// The comment begins at the line's start or after white space: a credential may have a # in it.
absl::string_view WithoutComment(absl::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || absl::ascii_isspace(line[i - 1]))) return line.substr(0, i);
  }
  return line;
}

}  // namespace

absl::Status ForEachLine(absl::string_view text, absl::string_view what,
                         absl::FunctionRef<absl::Status(absl::string_view)> take) {
  if (text.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(text.size(), " bytes; allowed: up to ", kMaxFileBytes));
  }
  size_t number = 0;
  size_t taken = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(WithoutComment(line));
    if (line.empty()) continue;
    const absl::Status status =
        taken < kMaxFileLines
            ? take(line)
            : absl::InvalidArgumentError(absl::StrCat("more than ", kMaxFileLines, " ", what));
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
    }
    ++taken;
  }
  return absl::OkStatus();
}

absl::Status CheckLastLine(absl::string_view text) {
  if (absl::EndsWith(text, "\n")) return absl::OkStatus();
  return absl::InvalidArgumentError("the last line has no end; allowed: a newline behind it");
}

}  // namespace gemmd
