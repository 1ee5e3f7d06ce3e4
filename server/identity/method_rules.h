// Which role a method needs.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/identity/roles.h"

namespace gemmd {

// The callers of a method.
struct MethodRule {
  enum class Who : uint8_t {
    kNobody,   // UNIMPLEMENTED to whoever the server knows: a method that no rule names
    kOff,      // UNIMPLEMENTED
    kAnyone,   // without credentials, too
    kCallers,  // whoever the server knows
    kRole,     // callers that have `role`
  };
  Who who = Who::kNobody;
  CallerRole role = CallerRole::kCall;

  friend bool operator==(const MethodRule&, const MethodRule&) = default;
};

// "off", "anyone" or the name of a role.
absl::StatusOr<MethodRule> ParseMethodRule(absl::string_view text);
std::string ToString(const MethodRule& rule);

// The rules of gRPC's own services, which the operator sets.
struct ServiceRules {
  // Where it is kAnyone that is for Check alone: Watch takes whoever the server knows.
  MethodRule health = {.who = MethodRule::Who::kRole, .role = CallerRole::kCall};
  MethodRule reflection = {.who = MethodRule::Who::kRole, .role = CallerRole::kCall};
};

// The rule for a method of gemm.v1.GemmService or inference.GRPCInferenceService, such as
// "Multiply": kNobody where no row names it.
MethodRule RuleForMethod(absl::string_view method);

// The rule for "/package.Service/Method". kNobody for a service that is not named here: one that
// the server does not have, or one that was added and whose callers nobody thought of.
MethodRule RuleForPath(absl::string_view path, const ServiceRules& services);

}  // namespace gemmd
