#include "kernels/bench/backend/backend.h"

namespace gemm::bench {

absl::Status Backend::Repeat(const std::function<absl::Status(int)>& enqueue, int count,
                             const std::function<bool()>& again) {
  do {
    for (int i = 0; i < count; ++i) {
      if (const absl::Status status = enqueue(i); !status.ok()) return status;
    }
    if (const absl::Status status = Synchronize(); !status.ok()) return status;
  } while (again());
  return absl::OkStatus();
}

}  // namespace gemm::bench
