// The log of callers, quotas and TLS. No token, key or payload is ever in it.
#pragma once

#include <string>
#include <vector>

#include "server/identity/identity.h"

namespace gemmd {

// A sentence for each file that others may write, and for a private key that everybody may
// read. The owner and, for reading, the group are trusted.
std::vector<std::string> PermissionsTooWide(const IdentityOptions& options);

// At the start; `open` as CheckExposure has it, a warning each.
void LogIdentity(const Identity& identity, const std::vector<std::string>& open);

void LogReload(const Identity& identity, const Reload& reload);

// At level debug: who calls without right may do so a million times.
void LogRefusal(const Refusal& refusal);

}  // namespace gemmd
