// The features that the trees of estimates look at.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "gemm/kernel.h"
#include "gemm/problem.h"

namespace gemm {

// The places of features. Those of the product come first, then those of a kernel with it.
enum Feature : size_t {
  kLogM,  // log2
  kLogN,
  kLogK,
  kLowBitsM,  // by how many powers of two it can be divided, at most 4
  kLowBitsN,
  kLowBitsK,
  kLogWork,      // log2(m n k)
  kLogArea,      // log2(m n)
  kLogAspect,    // log2(m / n)
  kLogDepth,     // log2(k / sqrt(m n))
  kLogTiles128,  // log2 of the tiles of 128 x 128 of D
  kFill128,      // how full the waves of such tiles are on 132 multiprocessors
  kLogTiles64,
  kFillM128,  // m as a share of the rows of all such tiles
  kFillN128,
  kLogBase,  // of the least formula's seconds, natural
  kTransA,
  kTransB,
  kTypesPlace,   // the place of the types in their class
  kDevicePlace,  // the place of the device
  kLogTiles,     // from here on of the kernel's own tile; 128 x 128 x 64 where a library decides
  kFill,
  kLogWaves,
  kFillM,
  kFillN,
  kLogSteps,  // log2 of the tiles along k
  kFillK,
  kLogOfBase,  // of its formula's seconds over the least one's, natural
  kFeatures,
};
using Features = std::array<float, kFeatures>;

// The least of the formulas' seconds. If no kernel has a formula, the time that the arithmetic and
// the memory of an H200 take.
double BaseSeconds(const Problem& p, absl::Span<const double> formulas);

// The features of the product.
void SetProductFeatures(const Problem& p, double base, size_t types, size_t device, Features& f);
// Those of a kernel with it. `seconds`: its formula's, or the base.
void SetKernelFeatures(const Problem& p, const Kernel& kernel, double seconds, double base,
                       Features& f);

}  // namespace gemm
