#include "server/engine/core/report.h"

namespace gemmd {

absl::string_view Name(Role role) {
  switch (role) {
    case Role::kA:
      return "a";
    case Role::kB:
      return "b";
    case Role::kC:
      return "c";
    case Role::kBias:
      return "bias";
    case Role::kScalesA:
      return "scales_a";
    case Role::kScalesB:
      return "scales_b";
  }
  return "?";
}

absl::string_view Name(CheckResult result) {
  switch (result) {
    case CheckResult::kNone:
      return "none";
    case CheckResult::kPassed:
      return "passed";
    case CheckResult::kPartial:
      return "partial";
    case CheckResult::kUnusual:
      return "unusual";
    case CheckResult::kSuspect:
      return "suspect";
    case CheckResult::kWrong:
      return "wrong";
    case CheckResult::kLost:
      return "lost";
  }
  return "?";
}

}  // namespace gemmd
