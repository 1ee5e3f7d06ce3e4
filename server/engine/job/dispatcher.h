// Which kernel runs a problem on a device.
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

// `types.compute` is the default for the types where `compute_given` is false;
// a kernel chosen by name may then bring its own. NOT_FOUND for a name or family
// that does not exist; FAILED_PRECONDITION where this device lacks it;
// UNIMPLEMENTED for the integer types, which no kernel takes; INVALID_ARGUMENT
// for other type mixes that no kernel takes, types that the named one does not,
// and launch parameters. What a named kernel cannot do is answered with the
// nearest that can.
absl::StatusOr<KernelPick> PickKernel(const KernelRequest& request, const gemm::Types& types,
                                      bool compute_given, const gemm::DeviceCaps& device);

}  // namespace gemmd
