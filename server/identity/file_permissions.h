// What other users of the machine may do with the files of callers and TLS.
#pragma once

#include <string>
#include <vector>

#include "server/identity/identity.h"

namespace gemmd {

// A sentence for each file that others may write, and for a private key that everybody may
// read. The owner and, for reading, the group are trusted.
std::vector<std::string> PermissionsTooWide(const IdentityOptions& options);

}  // namespace gemmd
