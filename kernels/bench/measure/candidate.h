// The candidates of a benchmark: kernels, most of them of the catalogue, each with its types,
// layout and launch parameters.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/kernel.h"
#include "kernels/bench/backend/backend.h"
#include "kernels/bench/spec/layout.h"
#include "kernels/bench/spec/selection.h"

namespace gemm::bench {

struct Candidate {
  const Kernel* kernel = nullptr;
  Types types{};
  Layout layout;
  LaunchParams params{};
  LaunchFn launch = nullptr;  // replaces the kernel's own
};

// The kernels of the selection's names and families, in the order of the catalogue.
// NOT_FOUND where a name or a family fits no kernel, or no kernel fits both.
absl::StatusOr<std::vector<const Kernel*>> SelectKernels(const Selection& selection);

// The candidates that `device` can run, in the order of the catalogue. An error if a name, a
// family, a parameter or a value fits no kernel, if `device` cannot run a kernel named in full, or
// if no candidate is left.
absl::StatusOr<std::vector<Candidate>> SelectCandidates(const Selection& selection,
                                                        const DeviceCaps& device);

// The vendor's kernel for these types: cuBLAS; cuBLASLt's first choice where cuBLAS
// does not take them; OpenBLAS on the host. Null where there is none.
const Kernel* FindBaseline(const Types& types, const DeviceCaps& device);

// "swizzle=2048 group_m=8"; "own" where the kernel chooses.
std::string ParamsText(const Candidate& candidate);

// Whether all of `name` fits `pattern`: * is any run of characters, ? any one.
bool GlobMatches(absl::string_view pattern, absl::string_view name);

}  // namespace gemm::bench
