#include "server/process/version.h"

#include "absl/strings/str_cat.h"

namespace gemmd {

const BuildInfo& ThisBuild() {
  // The values come from server/CMakeLists.txt.
  static const BuildInfo* const kBuild = new BuildInfo{
      .version = GEMMD_VERSION,
      .commit = GEMMD_COMMIT,
      .cuda = GEMMD_CUDA_VERSION,
      .compiler = GEMMD_COMPILER,
  };
  return *kBuild;
}

std::string Describe(const BuildInfo& build) {
  return absl::StrCat("gemmd ", build.version, " (commit ", build.commit, ", ",
                      build.cuda.empty() ? "host devices only" : absl::StrCat("CUDA ", build.cuda),
                      ", ", build.compiler, ")");
}

}  // namespace gemmd
