// The check of a job's product (gemm/check.h): whether there is one, of what, and its verdict.
//
// A product beyond the likely bound is computed again by another kernel, and checked again. The
// second product is delivered, unless it is beyond what any right kernel may do: then the job
// fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemm/check.h"
#include "server/engine/bounds/options.h"
#include "server/engine/core/form.h"
#include "server/engine/core/report.h"
#include "server/engine/device/device.h"
#include "server/engine/job/dispatcher.h"
#include "server/engine/job/job.h"

namespace gemmd {

// Drawn once for a job. The seed is the operating system's: no caller can know the signs that
// its product is checked with.
struct CheckWish {
  bool wanted = false;
  bool by_request = false;  // also where the server's policy asks for nothing
  uint64_t seed = 0;
};
CheckWish WishFor(Verify request, const EngineOptions& policy);

// A check that is to take place.
struct CheckPlan {
  gemm::Problem problem;      // whose D is checked: the job's, or that of its accumulators
  bool accumulators = false;  // the epilogue is a pass of its own, as the activation is not linear
  KernelPick first;
  KernelPick second;  // the same as the first where no other kernel takes the types
  uint64_t seed = 0;
  size_t accumulator_bytes = 0;
  size_t scratch_bytes = 0;
  size_t workspace_bytes = 0;  // enough for both kernels

  // Device memory besides the workspace: the accumulators, then the scratch.
  size_t bytes() const { return accumulator_bytes + scratch_bytes; }
};

// How a wished check of `problem`, a product of this form, which `pick` would compute, can take
// place on a device. `plan` is empty where it cannot, and `why_not` says why: without a product
// there is nothing to check, and some forms are not checked. FAILED_PRECONDITION where the request
// asks for it and the form is not, or the kernel that it names cannot leave the accumulators. For
// a block of rows a policy's check takes the kernel that is picked: that of the whole product.
struct CheckDecision {
  std::optional<CheckPlan> plan;
  std::string why_not;
};
absl::StatusOr<CheckDecision> PlanCheck(const CheckWish& wish, const KernelRequest& request,
                                        Form form, const gemm::Problem& problem,
                                        const KernelPick& pick, const gemm::DeviceCaps& device);

// The verdict of two checks on a product; `second` is null if the first product was likely right.
// LostProduct is the error if the second product is wrong, too: DATA_LOSS.
CheckResult Judge(const gemm::CheckOutcome& first, const gemm::CheckOutcome* second);
absl::Status LostProduct(const CheckPlan& plan, const gemm::CheckOutcome& first,
                         const gemm::CheckOutcome& second, absl::string_view device);

}  // namespace gemmd
