// The layouts that a Hopper variant's kernels read: others are transposed first.
#pragma once

#include "gemm/problem.h"
#include "kernels/hopper/config.h"
#include "kernels/transpose/operands.h"

namespace gemm {

// wgmma takes operands that are not 16 bits wide along k alone, and fewer than 64 lines along k
// alone. What splits B (split_b.h) reads either layout.
constexpr LoadLayout HopperLayout(const HopperConfig& config, const Problem& p) {
  if (config.f32x3) return {.trans_a = false, .trans_b = p.trans_b};
  if (config.along_k_only()) return {.trans_a = false, .trans_b = true};
  return {.trans_a = !config.swap && p.trans_a, .trans_b = p.trans_b};
}

}  // namespace gemm
