// Picks the kernel for a problem on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gemm/estimates.h"
#include "gemm/kernel.h"
#include "server/engine/core/kernel_choices.h"
#include "server/engine/core/report.h"
#include "server/engine/core/tuned_kernels.h"
#include "server/engine/job/job.h"

namespace gemmd {

// All that a pick depends on beside the request.
struct PickSite {
  gemm::DeviceCaps device;
  const TunedKernels* tuned = nullptr;  // may be null: by estimate and rank alone
  // Those of the device's model; without them formulas alone estimate.
  gemm::DeviceEstimates estimates;
  // A kernel of the table, or with an estimate, that needs more scratch memory is passed over.
  size_t max_workspace_bytes = std::numeric_limits<size_t>::max();
};

// Whether the request has a kernel's name, rather than leave the choice open.
bool NamesKernel(const KernelRequest& request);

// Seconds that each of `kernels` should take on the site's device, in their order; infinite where
// nothing is known of one, or it would refuse the problem.
std::vector<double> EstimatedSeconds(const gemm::Problem& problem, const PickSite& site,
                                     absl::Span<const gemm::Kernel* const> kernels);

// A request that names no kernel gets the tuning table's for the problem. Else it gets, of the
// deterministic kernels that take the problem, the one with the least estimate. If none has an
// estimate, it gets the one with the highest auto_rank. No table has products of a form without
// FormRules::tuned. If the device's model was measured, an entry of the table for another shape
// does not count: the estimates know more than one shape nearby. Else it counts if its kernel has
// as many tiles for both shapes. A batch goes to kernels that take batches, a group to those that
// take it in one launch if there are any. The kernel never has other types or another compute mode
// than the problem's. Only a named kernel may use its own mode, if `compute_given` is false:
// `problem.types.compute` is then the default for the types. Errors:
// - NOT_FOUND: unknown kernel or family.
// - FAILED_PRECONDITION: this device cannot run it.
// - INVALID_ARGUMENT: types that no kernel takes, types that the named kernel does
//   not take, a batch where it takes none, a size beyond its limits, or wrong launch parameters.
// If a named kernel cannot do it, the error names the closest kernel that can.
//  `choices`, which may be null, remembers the choices at this site.
absl::StatusOr<KernelPick> PickKernel(const KernelRequest& request, const gemm::Problem& problem,
                                      bool compute_given, const PickSite& site,
                                      KernelChoices* choices = nullptr);

// The same without table and estimates: it depends on types, form and limits of size alone.
absl::StatusOr<KernelPick> PickKernelByRank(const KernelRequest& request,
                                            const gemm::Problem& problem,
                                            const gemm::DeviceCaps& device);

// Says in `pick`, which was made for the whole product of `product_rows` rows, that it is a
// block's. An error where its kernel does not promise that the rows of D do not depend on m:
// INVALID_ARGUMENT where the request names it, else FAILED_PRECONDITION.
absl::Status ChooseForRowBlock(int64_t product_rows, KernelPick& pick);

// `params` by name.
std::map<std::string, int64_t> NamedParams(const gemm::Kernel& kernel,
                                           const gemm::LaunchParams& params);

}  // namespace gemmd
