#include "server/engine/bounds/caller_quota.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "server/engine/bounds/bound_error.h"

namespace gemmd {

std::string CallerHas(absl::string_view caller) {
  return caller.empty() ? "all callers together have"
                        : absl::StrCat("the caller '", caller, "' has");
}

absl::Status CallerLedger::Check(absl::string_view caller, const Request& request) const {
  const CallerShare share = of(caller);
  const auto refusal = [&](absl::string_view bound, bool passes, absl::string_view message) {
    return BoundError({.bound = std::string(bound),
                       .caller = std::string(caller),
                       .retry_after = passes ? std::optional(kRetrySoon) : std::nullopt},
                      message);
  };
  if (share.count >= request.most) {
    return refusal(
        request.count_bound, request.passes && request.most > 0,
        absl::StrCat(request.count_bound, ": ", CallerHas(caller), " ", share.count, " of at most ",
                     request.most, " (--quotas-file)", request.most > 0 ? ": " : "",
                     request.most > 0 ? request.what_to_do : ""));
  }
  // Not added up: a request may ask for any number of bytes.
  if (share.bytes <= request.most_bytes &&
      request.bytes <= static_cast<uint64_t>(request.most_bytes - share.bytes)) {
    return absl::OkStatus();
  }
  const bool fits = request.bytes <= static_cast<uint64_t>(request.most_bytes);
  return refusal(
      request.bytes_bound, fits && request.passes,
      absl::StrCat(request.bytes_bound, ": ", request.bytes, " more bytes; ", CallerHas(caller),
                   " ", share.bytes, " of at most ", request.most_bytes,
                   " (--quotas-file): ", fits ? request.what_to_do : "ask for less at once"));
}

void CallerLedger::Add(const std::string& caller, uint64_t bytes) {
  CallerShare& share = shares_[caller];
  ++share.count;
  share.bytes += static_cast<int64_t>(bytes);
}

void CallerLedger::Remove(const std::string& caller, uint64_t bytes) {
  const auto it = shares_.find(caller);
  it->second.bytes -= static_cast<int64_t>(bytes);
  if (--it->second.count == 0) shares_.erase(it);
}

CallerShare CallerLedger::of(absl::string_view caller) const {
  const auto it = shares_.find(caller);
  return it == shares_.end() ? CallerShare() : it->second;
}

}  // namespace gemmd
