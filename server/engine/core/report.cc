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
  }
  return "?";
}

}  // namespace gemmd
