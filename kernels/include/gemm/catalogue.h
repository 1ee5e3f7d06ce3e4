// All kernels of this build, by name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemm/kernel.h"

namespace gemm {

// All rows: family by family, each in the order of its table. A build without CUDA has
// the host's alone. The pointers are valid as long as the process lives.
absl::Span<const Kernel* const> Catalogue();

// The families, in the order of the catalogue.
absl::Span<const absl::string_view> Families();

// Unknown name: NOT_FOUND, with the nearest names.
absl::StatusOr<const Kernel*> FindKernel(absl::string_view name);

// At most `count` names, by edit distance from `name`.
std::vector<absl::string_view> NearestNames(absl::string_view name, size_t count);

// A replacement for `kernel` among the rows for which `can` is true: the nearest of its family by
// name, else the one that `auto` ranks first. Null if there is none.
const Kernel* NearestKernel(const Kernel& kernel, absl::FunctionRef<bool(const Kernel&)> can);

// Whether `kernel` may be chosen for these types when the caller names none: it takes them, and
// gives the same bits every time.
bool MayBeChosen(const Kernel& kernel, const Types& types);

// `values` over the kernel's defaults. INVALID_ARGUMENT for a name the kernel
// does not have, or a value outside its range.
absl::StatusOr<LaunchParams> ResolveParams(const Kernel& kernel,
                                           const std::map<std::string, int64_t>& values);

}  // namespace gemm
