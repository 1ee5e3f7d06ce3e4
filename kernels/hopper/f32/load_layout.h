// The layouts that a Hopper variant of f32 on CUDA cores reads: others are transposed first.
#pragma once

#include "kernels/hopper/f32/config.h"
#include "kernels/transpose/operands.h"

namespace gemm {

constexpr LoadLayout HopperF32Layout(const HopperF32Config& config, const Problem& p) {
  return {.trans_a = p.trans_a || !config.along_k(), .trans_b = p.trans_b && config.along_k()};
}

}  // namespace gemm
