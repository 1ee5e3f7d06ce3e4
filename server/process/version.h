// The version of this build.
#pragma once

#include <string>

namespace gemmd {

struct BuildInfo {
  std::string version;   // "1.2.3"
  std::string commit;    // short; "unknown" where it was built outside a checkout
  std::string cuda;      // the toolkit's version; empty in a build for the host alone
  std::string compiler;  // "GNU 12.2.0"
};

const BuildInfo& ThisBuild();

// "gemmd 1.2.3 (commit, ...)".
std::string Describe(const BuildInfo& build);

}  // namespace gemmd
