#include "server/identity/method_rules.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gemm/quote.h"

namespace gemmd {
namespace {

struct MethodRow {
  absl::string_view method;
  MethodRule rule;
};

constexpr MethodRule Needs(CallerRole role) {
  return {.who = MethodRule::Who::kRole, .role = role};
}

// Every method of the contract. What a call may do to which matrix is decided where
// the matrix is known. Each client begins with GetServerInfo, whatever its role is for.
constexpr MethodRow kMethods[] = {
    {"Multiply", Needs(CallerRole::kCall)},
    {"MultiplyUnary", Needs(CallerRole::kCall)},
    {"PutMatrix", Needs(CallerRole::kMatrices)},
    {"GetMatrix", Needs(CallerRole::kMatrices)},
    {"ListMatrices", Needs(CallerRole::kMatrices)},
    {"DeleteMatrix", Needs(CallerRole::kMatrices)},
    {"ListKernels", Needs(CallerRole::kCall)},
    {"RankKernels", Needs(CallerRole::kCall)},
    {"GetServerInfo", {.who = MethodRule::Who::kCallers}},
    {"Benchmark", Needs(CallerRole::kBenchmark)},
    {"ReloadTuning", Needs(CallerRole::kAdmin)},
    {"ListTraffic", Needs(CallerRole::kBenchmark)},
};

// A stream of Watch lasts as long as its client likes and takes some 20 KB: one of a stranger
// would be bounded by the number of connections and streams alone.
MethodRule HealthRule(absl::string_view method, const MethodRule& rule) {
  if (method != "Check" && rule.who == MethodRule::Who::kAnyone) {
    return {.who = MethodRule::Who::kCallers};
  }
  return rule;
}

}  // namespace

absl::StatusOr<MethodRule> ParseMethodRule(absl::string_view text) {
  if (text == "off") return MethodRule{.who = MethodRule::Who::kOff};
  if (text == "anyone") return MethodRule{.who = MethodRule::Who::kAnyone};
  const absl::StatusOr<CallerRole> role = ParseCallerRole(text);
  if (role.ok()) return MethodRule{.who = MethodRule::Who::kRole, .role = *role};
  return absl::InvalidArgumentError(absl::StrCat(role.status().message(), ", anyone, off"));
}

std::string ToString(const MethodRule& rule) {
  switch (rule.who) {
    case MethodRule::Who::kNobody:
      return "nobody";
    case MethodRule::Who::kOff:
      return "off";
    case MethodRule::Who::kAnyone:
      return "anyone";
    case MethodRule::Who::kCallers:
      return "callers";
    case MethodRule::Who::kRole:
      break;
  }
  return std::string(Name(rule.role));
}

MethodRule RuleForMethod(absl::string_view method) {
  for (const MethodRow& row : kMethods) {
    if (row.method == method) return row.rule;
  }
  return {.who = MethodRule::Who::kNobody};
}

MethodRule RuleForPath(absl::string_view path, const ServiceRules& services) {
  if (absl::ConsumePrefix(&path, "/gemm.v1.GemmService/")) return RuleForMethod(path);
  if (absl::ConsumePrefix(&path, "/grpc.health.v1.Health/")) {
    return HealthRule(path, services.health);
  }
  if (absl::StartsWith(path, "/grpc.reflection.")) return services.reflection;
  return {.who = MethodRule::Who::kNobody};
}

}  // namespace gemmd
