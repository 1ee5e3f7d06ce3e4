// The bounds of each caller, by the quotas file.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/bounds/caller_quota.h"
#include "server/identity/roles.h"

namespace gemmd {

// One for each version of the quotas file; never changes.
class Quotas {
 public:
  // No bounds.
  Quotas() = default;

  // The text of a quotas file, with at least one quota. A line ends with a newline. It is
  // empty, or says whose it is and what that one may have; a comment begins with a #, at the
  // line's start or after white space:
  //
  //   alice       jobs=100 admitted-bytes=8GiB weight=2
  //   role:admin  weight=4
  //   *           jobs=500 streams=64 store-bytes=4GiB bytes-per-second=200MiB
  //
  // A key that a line leaves out has no bound; the weight is then 1. INVALID_ARGUMENT names the
  // line, the key, the value and what is allowed.
  static absl::StatusOr<Quotas> Parse(absl::string_view text);

  // The quota of the line with the caller's name; else of the first line with one of its roles;
  // else of the line *. One line counts alone. Never null.
  CallerQuotaPtr Of(const Caller& caller) const;

  // The callers that have a line of their own, in the order of their names.
  std::vector<std::string> names() const;

  // The number of lines with a quota.
  size_t size() const { return callers_.size() + roles_.size() + (everybody_.has_value() ? 1 : 0); }

 private:
  absl::Status AddLine(absl::string_view line);

  std::map<std::string, CallerQuotaPtr, std::less<>> callers_;
  std::vector<std::pair<CallerRole, CallerQuota>> roles_;  // without the caller's name
  std::optional<CallerQuota> everybody_;
};

}  // namespace gemmd
