#include <algorithm>

#include "kernels/core/cuda_status.h"
#include "kernels/transpose/padded.h"

namespace gemm {
namespace {

constexpr int kThreads = 256;
// Enough blocks to fill any GPU; larger matrices are strided over.
constexpr int64_t kMaxBlocks = 65536;
constexpr int kChunkBytes = 16;

// The first `valid` bytes, and zeros.
__device__ uint4 Masked(uint4 chunk, int64_t valid) {
  uint32_t words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const int64_t left = valid - 4 * w;
    if (left <= 0) {
      words[w] = 0;
    } else if (left < 4) {
      words[w] &= (1u << 8 * left) - 1;
    }
  }
  return {words[0], words[1], words[2], words[3]};
}

// One thread, one chunk of the target. The bytes between a row's end and the
// next multiple of 16 may be read.
__global__ void PadKernel(const MatrixBytes matrix, uint4* target, int64_t rows, int64_t chunks) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t x = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; x < rows * chunks;
       x += step) {
    const int64_t row = x / chunks, byte = x % chunks * kChunkBytes;
    uint4 chunk{0, 0, 0, 0};
    if (row < matrix.rows && byte < matrix.row_bytes) {
      const char* source = static_cast<const char*>(matrix.data) + row * matrix.pitch + byte;
      chunk = Masked(*reinterpret_cast<const uint4*>(source), matrix.row_bytes - byte);
    }
    target[x] = chunk;
  }
}

}  // namespace

absl::Status CopyPadded(const MatrixBytes& matrix, void* target, int64_t rows, int64_t row_bytes,
                        CUstream_st* stream) {
  const int64_t chunks = row_bytes / kChunkBytes;
  const int64_t blocks = std::min((rows * chunks + kThreads - 1) / kThreads, kMaxBlocks);
  PadKernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      matrix, static_cast<uint4*>(target), rows, chunks);
  return CudaStatus(cudaGetLastError(), "launch of an operand's padded copy");
}

}  // namespace gemm
