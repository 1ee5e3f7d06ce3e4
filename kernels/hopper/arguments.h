// What a Hopper kernel is launched with.
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

// `Order` tells which tiles there are, and of which product each is.
template <class Order>
struct HopperArguments {
  int m;
  int n;
  int k_tiles;
  Order order;
  // Whether D is alpha times the accumulators, and whether its rows end with a chunk of 16 bytes:
  // TMA writes whole chunks.
  bool only_scales;
  // From one product of a batch to the next: 0 where all read the same matrix, else 1.
  int step_a;
  int step_b;
  BatchStrides strides;
};

}  // namespace gemm
