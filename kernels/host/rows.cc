// The table of the host family.
#include "kernels/core/families.h"
#include "kernels/host/kernels.h"

namespace gemm {
namespace {

// Every compute mode that a caller may ask of these types: the host is at least
// as accurate as each.
constexpr Types kTypes[] = {
    {DType::kF64, DType::kF64, DType::kF64, Compute::kF64},
    {DType::kF32, DType::kF32, DType::kF32, Compute::kF32},
    {DType::kF32, DType::kF32, DType::kF32, Compute::kTF32},
    {DType::kF32, DType::kF32, DType::kF32, Compute::kF32x3},
    {DType::kF16, DType::kF16, DType::kF16, Compute::kF32},
    {DType::kF16, DType::kF16, DType::kF16, Compute::kF16},
    {DType::kF16, DType::kF16, DType::kF32, Compute::kF32},
    {DType::kBF16, DType::kBF16, DType::kBF16, Compute::kF32},
    {DType::kBF16, DType::kBF16, DType::kF32, Compute::kF32},
    {DType::kE4M3, DType::kE4M3, DType::kF16, Compute::kF32},
    {DType::kE4M3, DType::kE4M3, DType::kBF16, Compute::kF32},
    {DType::kE4M3, DType::kE4M3, DType::kF32, Compute::kF32},
    {DType::kE5M2, DType::kE5M2, DType::kF16, Compute::kF32},
    {DType::kE5M2, DType::kE5M2, DType::kBF16, Compute::kF32},
    {DType::kE5M2, DType::kE5M2, DType::kF32, Compute::kF32},
    {DType::kE4M3, DType::kE5M2, DType::kF16, Compute::kF32},
    {DType::kE4M3, DType::kE5M2, DType::kBF16, Compute::kF32},
    {DType::kE4M3, DType::kE5M2, DType::kF32, Compute::kF32},
    {DType::kE5M2, DType::kE4M3, DType::kF16, Compute::kF32},
    {DType::kE5M2, DType::kE4M3, DType::kBF16, Compute::kF32},
    {DType::kE5M2, DType::kE4M3, DType::kF32, Compute::kF32},
    {DType::kS8, DType::kS8, DType::kS32, Compute::kS32},
    {DType::kS8, DType::kS8, DType::kF32, Compute::kS32},
    {DType::kS8, DType::kS8, DType::kF16, Compute::kS32},
    {DType::kS8, DType::kS8, DType::kBF16, Compute::kS32},
};

constexpr Kernel kRows[] = {
    {
        .name = "host_openblas",
        .family = "host",
        .summary = "OpenBLAS; 8- and 16-bit types are multiplied as f32",
        .target = Target::kHost,
        .types = kTypes,
        .auto_rank = 20,
        .batches = true,
        .block_scales = true,
        .max_extent = kHostOpenblasMost,
        .workspace_bytes = HostOpenblasWorkspace,
        .launch = LaunchHostOpenblas,
    },
    {
        .name = "host_reference",
        .family = "host",
        .summary = "accumulates in double precision, in order of k: the oracle",
        .target = Target::kHost,
        .types = kTypes,
        .auto_rank = 10,
        .batches = true,
        .row_blocks = true,
        .block_scales = true,
        .workspace_bytes = HostReferenceWorkspace,
        .launch = LaunchHostReference,
    },
};

}  // namespace

absl::Span<const Kernel> HostRows() { return kRows; }

}  // namespace gemm
