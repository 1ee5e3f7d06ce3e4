#include "server/identity/roles.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gemm/quote.h"

namespace gemmd {
namespace {

constexpr absl::string_view kRoleNames = "call, matrices, benchmark, metrics, admin";

}  // namespace

absl::string_view Name(CallerRole role) {
  switch (role) {
    case CallerRole::kCall:
      return "call";
    case CallerRole::kMatrices:
      return "matrices";
    case CallerRole::kBenchmark:
      return "benchmark";
    case CallerRole::kMetrics:
      return "metrics";
    case CallerRole::kAdmin:
      return "admin";
  }
  return "";
}

std::vector<std::string> RoleSet::Names() const {
  std::vector<std::string> names;
  for (const CallerRole role : kCallerRoles) {
    if (Has(role)) names.emplace_back(Name(role));
  }
  return names;
}

absl::StatusOr<CallerRole> ParseCallerRole(absl::string_view text) {
  for (const CallerRole role : kCallerRoles) {
    if (Name(role) == text) return role;
  }
  return absl::InvalidArgumentError(absl::StrCat(gemm::Quoted(text), "; allowed: ", kRoleNames));
}

absl::StatusOr<RoleSet> ParseRoles(absl::string_view text) {
  if (text == "all") return RoleSet::All();
  RoleSet roles;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const absl::StatusOr<CallerRole> role = ParseCallerRole(word);
    if (!role.ok()) {
      // Not quoted: where columns are confused it is a token.
      return absl::InvalidArgumentError(absl::StrCat("roles: one of ", word.size(),
                                                     " bytes is unknown; allowed: ", kRoleNames,
                                                     " (joined with commas), or all"));
    }
    roles.Add(*role);
  }
  return roles;
}

}  // namespace gemmd
