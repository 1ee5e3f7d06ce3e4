#include "gemm/generate.h"
#include "kernels/generate/element_function.h"

namespace gemm {

absl::Status CheckGenerated(DType type) {
  return VisitGenerated(type, []<class To>() { return absl::OkStatus(); });
}

absl::Status GenerateHost(const GeneratorSpec& spec, const GeneratorTarget& target) {
  return VisitGenerated(target.type, [&]<class To>() {
    const GeneratorLines lines = LinesOf(target);
    for (int64_t line = 0; line < lines.lines; ++line) {
      for (int64_t position = 0; position < lines.length; ++position) {
        GenerateElement<To>(spec, lines, target.data, target.pitch_bytes, line, position);
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace gemm
