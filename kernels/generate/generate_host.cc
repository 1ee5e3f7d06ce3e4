#include <algorithm>

#include "gemm/generate.h"
#include "gemm/kernel.h"
#include "kernels/generate/element_function.h"

namespace gemm {

absl::Status CheckGenerated(DType type) {
  return VisitGenerated(type, []<class To>() { return absl::OkStatus(); });
}

absl::Status GenerateHost(const GeneratorSpec& spec, const GeneratorTarget& target,
                          const std::atomic<bool>* stop) {
  constexpr int64_t kRun = 1 << 16;  // about a millisecond
  return VisitGenerated(target.type, [&]<class To>() {
    const GeneratorLines lines = LinesOf(target);
    for (int64_t line = 0; line < lines.lines; ++line) {
      for (int64_t begin = 0; begin < lines.length; begin += kRun) {
        if (stop != nullptr && stop->load(std::memory_order_relaxed)) return Stopped();
        const int64_t end = std::min(lines.length, begin + kRun);
        for (int64_t position = begin; position < end; ++position) {
          GenerateElement<To>(spec, lines, target.data, target.pitch_bytes, line, position);
        }
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace gemm
