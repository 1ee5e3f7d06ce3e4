// The configuration of a thread-tiled kernel, and what follows from it.
#pragma once

#include <cstddef>

#include "gemm/dtype.h"
#include "kernels/numeric/host_device.h"

namespace gemm {

// A block computes a tile of D from k-tiles of A and B in shared memory, and each of its
// threads a part of that tile in registers.
struct TiledConfig {
  DType type = DType::kF32;  // of A, B, D and the accumulators: f32 or f16
  int block_m = 128;
  int block_n = 128;
  int block_k = 8;  // the k-tile
  int thread_m = 8;
  int thread_n = 8;
  int vector = 4;              // elements of a thread's load from global memory
  bool packed = false;         // two f16 accumulators in a register
  bool conflict_free = false;  // no bank conflict in shared memory
  int buffers = 1;             // k-tiles in shared memory
  bool prefetch = false;       // fragments are read a step ahead of their use
  bool async = false;          // cp.async
  int registers = 128;         // of a thread; blocks per SM follow from them

  constexpr int threads() const { return block_m / thread_m * (block_n / thread_n); }
  constexpr int warps() const { return threads() / 32; }
  constexpr int element_bytes() const { return static_cast<int>(SizeOf(type)); }
  // Blocks that an SM's 65536 registers hold.
  constexpr int blocks_per_sm() const { return 65536 / (registers * threads()); }
  // Elements of 16 bytes, the widest access to memory.
  constexpr int widest() const { return 16 / element_bytes(); }

  // Whether a k-tile of A is k x m in shared memory, so that a thread reads neighbours
  // along m. cp.async copies 4, 8 or 16 bytes: it can transpose f32, but not f16.
  constexpr bool transposes_a() const { return conflict_free && !(async && type == DType::kF16); }
};

}  // namespace gemm
