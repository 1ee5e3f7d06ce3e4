// Whether a product of these operands has one right result, whatever the order of its additions.
#pragma once

#include "gemm/problem.h"

namespace gemmd::ctl {

// True where gemm::Elements::kExact holds: A, B, C and the bias are integers, the factors are
// powers of two, and every type holds every partial sum of any order. Reads each operand once, up
// to its first element that is no integer. Sums are bounded by those of the magnitudes: f16
// accumulators take 2048, those of fp8 in tensor cores 2^14, f32 2^24.
bool SumsAreExact(const gemm::Problem& problem, const gemm::Operands& host);

}  // namespace gemmd::ctl
