#include "server/engine/bounds/bound_error.h"

#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gemmd {
namespace {

// The lines of the payload: the bound, nanoseconds or nothing, and for a caller's bound the
// caller's name. No part has a newline but the last.
constexpr absl::string_view kReachedBound = "gemmd/reached-bound";

}  // namespace

absl::Status BoundError(const ReachedBound& reached, absl::string_view message) {
  absl::Status status = absl::ResourceExhaustedError(message);
  std::string text = absl::StrCat(reached.bound, "\n");
  if (reached.retry_after.has_value()) {
    absl::StrAppend(&text, absl::ToInt64Nanoseconds(*reached.retry_after));
  }
  if (reached.caller.has_value()) absl::StrAppend(&text, "\n", *reached.caller);
  status.SetPayload(kReachedBound, absl::Cord(std::move(text)));
  return status;
}

std::optional<ReachedBound> ReachedBoundOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kReachedBound);
  if (!payload.has_value()) return std::nullopt;
  const std::string text(*payload);
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('\n', 2));
  ReachedBound reached{.bound = std::string(parts[0])};
  int64_t nanoseconds = 0;
  if (absl::SimpleAtoi(parts[1], &nanoseconds)) {
    reached.retry_after = absl::Nanoseconds(nanoseconds);
  }
  if (parts.size() > 2) reached.caller = std::string(parts[2]);
  return reached;
}

}  // namespace gemmd
