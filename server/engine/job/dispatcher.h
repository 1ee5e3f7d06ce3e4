// Picks the kernel for a problem on a device.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "gemm/kernel.h"
#include "server/engine/job/job.h"

namespace gemmd {

struct KernelPick {
  const gemm::Kernel* kernel = nullptr;
  gemm::LaunchParams params{};
  std::map<std::string, int64_t> named_params;  // as they are used, defaults included
  std::string reason;
  gemm::Compute compute = gemm::Compute::kF32;
};

// If `compute_given` is false, `types.compute` is the default for the types, and a kernel
// chosen by name may use its own. Errors:
// - NOT_FOUND: unknown kernel or family.
// - FAILED_PRECONDITION: this device cannot run it.
// - UNIMPLEMENTED: integer types, which no kernel takes.
// - INVALID_ARGUMENT: other types that no kernel takes, types that the named kernel does
//   not take, or wrong launch parameters.
// Where a named kernel cannot do it, the error names the closest kernel that can.
absl::StatusOr<KernelPick> PickKernel(const KernelRequest& request, const gemm::Types& types,
                                      bool compute_given, const gemm::DeviceCaps& device);

}  // namespace gemmd
