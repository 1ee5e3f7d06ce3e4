// The host's two ways to multiply; see rows.cc for what each takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "gemm/kernel.h"

namespace gemm {

// Accumulates in double precision, in blocks that stay in the L2 cache. Sums of products of s8 are
// exact there, and wrapped at the end.
absl::Status LaunchHostReference(const Launch& launch);
size_t HostReferenceWorkspace(const Problem& problem);

// The largest m, n and k of OpenBLAS, whose integers may have 32 bits: rows of any type that are
// padded to 16 bytes have leading dimensions within that, too.
inline constexpr int64_t kHostOpenblasMost = std::numeric_limits<int32_t>::max() / 16 * 16;

// OpenBLAS; 16- and 8-bit operands go through f32 blocks. Blocks of s8 are so short along k that
// f32 holds their products exactly; these are added up as integers. INVALID_ARGUMENT for a
// dimension beyond OpenBLAS's int.
absl::Status LaunchHostOpenblas(const Launch& launch);
size_t HostOpenblasWorkspace(const Problem& problem);

}  // namespace gemm
