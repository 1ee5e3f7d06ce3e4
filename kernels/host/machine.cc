#include "gemm/machine.h"

#include <cblas.h>

#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace gemm {
namespace {

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const absl::string_view name =
        absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1));
    if (!name.empty()) return std::string(name);
  }
  return "host";
}

// The second word of "OpenBLAS 0.3.26 NO_LAPACKE ...".
std::string OpenBlasVersion() {
  std::istringstream words(openblas_get_config());
  std::string name, version;
  words >> name >> version;
  return version.empty() ? "-" : version;
}

}  // namespace

Machine HostMachine() { return {.device = ProcessorName(), .library = OpenBlasVersion()}; }

}  // namespace gemm
