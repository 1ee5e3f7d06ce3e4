// What a Hopper kernel is launched with.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace gemm {

// A and B as they are stored, D as it is to be written.
struct HopperMaps {
  CUtensorMap a;
  CUtensorMap b;
  CUtensorMap d;
};

struct HopperArguments {
  int m;
  int n;
  int k_tiles;
  // Clusters of tiles, and how many rows of them are a group of the tile order.
  int clusters_m;
  int clusters_n;
  int group;
  // Whether D is alpha times the accumulators, and whether its rows end with a chunk of 16 bytes:
  // TMA writes whole chunks.
  bool only_scales;
};

}  // namespace gemm
