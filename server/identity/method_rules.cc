#include "server/identity/method_rules.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gemm/quote.h"

namespace gemmd {
namespace {

struct MethodRow {
  absl::string_view service;
  absl::string_view method;
  MethodRule rule;
};

constexpr MethodRule Needs(CallerRole role) {
  return {.who = MethodRule::Who::kRole, .role = role};
}

constexpr absl::string_view kGemm = "gemm.v1.GemmService";
constexpr absl::string_view kInference = "inference.GRPCInferenceService";

// Every method of the services of ours; no two have the same name. The matrix store decides what a
// call may do to which matrix. Each client begins with GetServerInfo, whatever its role is for.
constexpr MethodRow kMethods[] = {
    {kGemm, "Multiply", Needs(CallerRole::kCall)},
    {kGemm, "MultiplyUnary", Needs(CallerRole::kCall)},
    {kGemm, "PutMatrix", Needs(CallerRole::kMatrices)},
    {kGemm, "GetMatrix", Needs(CallerRole::kMatrices)},
    {kGemm, "ListMatrices", Needs(CallerRole::kMatrices)},
    {kGemm, "DeleteMatrix", Needs(CallerRole::kMatrices)},
    {kGemm, "ListKernels", Needs(CallerRole::kCall)},
    {kGemm, "RankKernels", Needs(CallerRole::kCall)},
    {kGemm, "GetServerInfo", {.who = MethodRule::Who::kCallers}},
    {kGemm, "Benchmark", Needs(CallerRole::kBenchmark)},
    {kGemm, "ReloadTuning", Needs(CallerRole::kAdmin)},
    {kGemm, "ListTraffic", Needs(CallerRole::kBenchmark)},
    {kInference, "ServerLive", {.who = MethodRule::Who::kCallers}},
    {kInference, "ServerReady", {.who = MethodRule::Who::kCallers}},
    {kInference, "ServerMetadata", {.who = MethodRule::Who::kCallers}},
    {kInference, "ModelReady", Needs(CallerRole::kCall)},
    {kInference, "ModelMetadata", Needs(CallerRole::kCall)},
    {kInference, "ModelInfer", Needs(CallerRole::kCall)},
    {kInference, "ModelStreamInfer", Needs(CallerRole::kCall)},
    {kInference, "ModelConfig", Needs(CallerRole::kCall)},
    {kInference, "ModelStatistics", Needs(CallerRole::kCall)},
    {kInference, "RepositoryIndex", Needs(CallerRole::kCall)},
    {kInference, "SystemSharedMemoryStatus", Needs(CallerRole::kCall)},
    {kInference, "SystemSharedMemoryRegister", Needs(CallerRole::kCall)},
    {kInference, "SystemSharedMemoryUnregister", Needs(CallerRole::kCall)},
    {kInference, "CudaSharedMemoryStatus", Needs(CallerRole::kCall)},
    {kInference, "CudaSharedMemoryRegister", Needs(CallerRole::kCall)},
    {kInference, "CudaSharedMemoryUnregister", Needs(CallerRole::kCall)},
};

// Whether the path is "/service/method" of the row.
bool IsPathOf(absl::string_view path, const MethodRow& row) {
  return absl::ConsumePrefix(&path, "/") && absl::ConsumePrefix(&path, row.service) &&
         absl::ConsumePrefix(&path, "/") && path == row.method;
}

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
  if (absl::ConsumePrefix(&path, "/grpc.health.v1.Health/")) {
    return HealthRule(path, services.health);
  }
  if (absl::StartsWith(path, "/grpc.reflection.")) return services.reflection;
  for (const MethodRow& row : kMethods) {
    if (IsPathOf(path, row)) return row.rule;
  }
  return {.who = MethodRule::Who::kNobody};
}

}  // namespace gemmd
