// Who makes a call.
#pragma once

#include <memory>
#include <string>

#include "server/identity/roles.h"

namespace gemmd {

struct Caller {
  std::string name;  // empty where the server asks nobody
  RoleSet roles;
};

// Shared by the calls of a caller; never changes.
using CallerPtr = std::shared_ptr<const Caller>;

}  // namespace gemmd
