#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/core/cuda_status.h"
#include "kernels/hopper/f32x3.h"
#include "kernels/hopper/split_b.h"

namespace gemm {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 32;
constexpr int kTileThreads = 8;  // of a row: each takes 4 elements
constexpr int64_t kMaxBlocks = 1 << 20;

// The Bs of a launch, and where their numbers go. Those of each B: the high ones to `high`, the low
// ones `low_behind` elements behind it.
struct SplitArguments {
  const uint32_t* b;
  int64_t ld;
  int64_t stride;
  uint32_t* high;
  int64_t high_ld;
  int64_t low_behind;
  int64_t n;
  int64_t k;
};

__device__ __forceinline__ void StoreSplit(const uint32_t (&bits)[4], uint32_t* high,
                                           int64_t low_behind) {
  HighLow split[4];
#pragma unroll
  for (int x = 0; x < 4; ++x) split[x] = CutToTf32(Split(bits[x]));
  *reinterpret_cast<uint4*>(high) = {split[0].high, split[1].high, split[2].high, split[3].high};
  *reinterpret_cast<uint4*>(high + low_behind) = {split[0].low, split[1].low, split[2].low,
                                                  split[3].low};
}

// B is stored n x k. A thread splits 16 bytes of a row. Bytes between a row's end and the next
// multiple of 16 may be read, but their results are not.
__global__ __launch_bounds__(kThreads) void SplitKernel(const SplitArguments arguments) {
  const uint32_t* const b = arguments.b + blockIdx.y * arguments.stride;
  uint32_t* const high = arguments.high + 2 * blockIdx.y * arguments.low_behind;
  const int64_t chunks = (arguments.k + 3) / 4;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t x = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       x < arguments.n * chunks; x += step) {
    const int64_t row = x / chunks, column = x % chunks * 4;
    const uint4 chunk = *reinterpret_cast<const uint4*>(b + row * arguments.ld + column);
    StoreSplit({chunk.x, chunk.y, chunk.z, chunk.w}, high + row * arguments.high_ld + column,
               arguments.low_behind);
  }
}

// B is stored k x n: it is transposed through a padded tile in shared memory, so that global
// memory is read and written in runs of 128 bytes.
__global__ __launch_bounds__(kThreads) void SplitTransposeKernel(const SplitArguments arguments) {
  __shared__ uint32_t tile[kTile][kTile + 1];
  const uint32_t* const b = arguments.b + blockIdx.y * arguments.stride;
  uint32_t* const high = arguments.high + 2 * blockIdx.y * arguments.low_behind;
  const int64_t across = (arguments.n + kTile - 1) / kTile;
  const int64_t tiles = across * ((arguments.k + kTile - 1) / kTile);
  const int row = static_cast<int>(threadIdx.x) / kTileThreads;
  const int column = static_cast<int>(threadIdx.x) % kTileThreads * 4;
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int64_t first_k = t / across * kTile, first_n = t % across * kTile;
    if (first_k + row < arguments.k && first_n + column < arguments.n) {
      const uint4 chunk =
          *reinterpret_cast<const uint4*>(b + (first_k + row) * arguments.ld + first_n + column);
      tile[row][column] = chunk.x;
      tile[row][column + 1] = chunk.y;
      tile[row][column + 2] = chunk.z;
      tile[row][column + 3] = chunk.w;
    }
    __syncthreads();
    if (first_n + row < arguments.n && first_k + column < arguments.k) {
      StoreSplit(
          {tile[column][row], tile[column + 1][row], tile[column + 2][row], tile[column + 3][row]},
          high + (first_n + row) * arguments.high_ld + first_k + column, arguments.low_behind);
    }
    __syncthreads();
  }
}

// Elements of a row of the split B.
int64_t SplitLd(const Problem& p) {
  return PitchBytes(p.k, DType::kF32) / static_cast<int64_t>(SizeOf(DType::kF32));
}

size_t BytesOfSplit(const Problem& p, int64_t count) {
  return static_cast<size_t>(2 * count * p.n * SplitLd(p)) * SizeOf(DType::kF32);
}

}  // namespace

size_t SplitBBytes(const Problem& problem) { return BytesOfSplit(problem, problem.batch); }

absl::Status SplitB(const Launch& launch, size_t used, TransposedProduct& product) {
  Problem& p = product.problem;
  Operands& o = product.operands;
  const bool shared = p.batch == 1 || o.stride_b == 0;
  const int64_t count = shared ? 1 : p.batch;
  if (const size_t bytes = used + BytesOfSplit(p, count); bytes > launch.workspace.bytes) {
    return absl::InternalError(absl::StrCat("the operands that the launch prepares have ", bytes,
                                            " bytes, the scratch memory for them ",
                                            launch.workspace.bytes));
  }
  auto* const high =
      reinterpret_cast<uint32_t*>(static_cast<std::byte*>(launch.workspace.data) + used);
  const SplitArguments arguments{.b = static_cast<const uint32_t*>(o.b),
                                 .ld = o.ldb,
                                 .stride = shared ? 0 : o.stride_b,
                                 .high = high,
                                 .high_ld = SplitLd(p),
                                 .low_behind = p.n * SplitLd(p),
                                 .n = p.n,
                                 .k = p.k};
  const int64_t chunks = (p.k + 3) / 4 * p.n;
  const int64_t tiles = (p.n + kTile - 1) / kTile * ((p.k + kTile - 1) / kTile);
  const int64_t blocks = p.trans_b ? (chunks + kThreads - 1) / kThreads : tiles;
  const dim3 grid(static_cast<unsigned>(std::min(blocks, kMaxBlocks)),
                  static_cast<unsigned>(count));
  if (p.trans_b) {
    SplitKernel<<<grid, kThreads, 0, launch.stream>>>(arguments);
  } else {
    SplitTransposeKernel<<<grid, kThreads, 0, launch.stream>>>(arguments);
  }
  if (absl::Status status = CudaStatus(cudaGetLastError(), "launch of the split of B");
      !status.ok()) {
    return status;
  }
  p.trans_b = true;
  o.b = high;
  o.ldb = arguments.high_ld;
  o.stride_b = shared ? 0 : 2 * arguments.low_behind;
  if (launch.transposed == nullptr) return absl::OkStatus();
  launch.transposed->recorded = true;
  return CudaStatus(cudaEventRecord(launch.transposed->event, launch.stream), "cudaEventRecord");
}

}  // namespace gemm
