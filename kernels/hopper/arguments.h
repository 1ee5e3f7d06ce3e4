// The arguments of a Hopper kernel.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/epilogue/batch_strides.h"

namespace gemm {

// A and B as they are stored, D as it is to be written.
struct HopperMaps {
  CUtensorMap a;
  CUtensorMap b;
  CUtensorMap d;
};

// `Order` gives the tiles, and the product of each.
template <class Order>
struct HopperArguments {
  int m;
  int n;
  int k_tiles;
  Order order;
  // Whether D is alpha times the accumulators, and whether its rows end with a chunk of 16 bytes:
  // TMA writes whole chunks.
  bool only_scales;
  // Matrices from one product of a batch to the next: 0 if all read the same one, else 1.
  int step_a;
  int step_b;
  BatchStrides strides;
};

}  // namespace gemm
