#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/core/cuda_status.h"
#include "kernels/transpose/operands.h"

namespace gemm {
namespace {

constexpr int kTile = 32;
constexpr int kThreadRows = 8;
constexpr int64_t kMaxBlocks = 1 << 20;

// Y[cols, rows] = X[rows, cols] transposed, through a padded tile in shared memory, so that
// global memory is read and written in whole lines. A grid has the matrices of a batch in y.
template <class Element>
__global__ __launch_bounds__(kTile* kThreadRows) void TransposeKernel(const Element* x, int64_t ldx,
                                                                      int64_t stride_x, Element* y,
                                                                      int64_t ldy, int64_t rows,
                                                                      int64_t cols) {
  __shared__ Element tile[kTile][kTile + 4 / sizeof(Element) + (sizeof(Element) > 4 ? 1 : 0)];
  x += blockIdx.y * stride_x;
  y += blockIdx.y * cols * ldy;
  const int64_t tiles_across = (cols + kTile - 1) / kTile;
  const int64_t tiles = tiles_across * ((rows + kTile - 1) / kTile);
  for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int64_t row = t / tiles_across * kTile, col = t % tiles_across * kTile;
    for (int r = threadIdx.y; r < kTile; r += kThreadRows) {
      const int64_t i = row + r, j = col + threadIdx.x;
      if (i < rows && j < cols) tile[r][threadIdx.x] = x[i * ldx + j];
    }
    __syncthreads();
    for (int r = threadIdx.y; r < kTile; r += kThreadRows) {
      const int64_t i = col + r, j = row + threadIdx.x;
      if (i < cols && j < rows) y[i * ldy + j] = tile[threadIdx.x][r];
    }
    __syncthreads();
  }
}

// Stored matrices of one shape, as many as a batch has, or one for all of its products.
struct Matrices {
  const void* data;
  int64_t ld;
  int64_t stride;
  int64_t rows;
  int64_t cols;
  int64_t count;
  DType type;
};

int64_t TransposedPitch(const Matrices& x) { return PitchBytes(x.rows, x.type); }

size_t TransposedBytes(const Matrices& x) {
  // The next transpose starts on a 256-byte boundary.
  return (static_cast<size_t>(x.count * x.cols * TransposedPitch(x)) + 255) / 256 * 256;
}

template <class Element>
void Enqueue(const Matrices& x, void* y, CUstream_st* stream) {
  const int64_t tiles = (x.rows + kTile - 1) / kTile * ((x.cols + kTile - 1) / kTile);
  const dim3 blocks(static_cast<unsigned>(std::min(tiles, kMaxBlocks)),
                    static_cast<unsigned>(x.count));
  TransposeKernel<Element><<<blocks, dim3(kTile, kThreadRows), 0, stream>>>(
      static_cast<const Element*>(x.data), x.ld, x.stride, static_cast<Element*>(y),
      TransposedPitch(x) / static_cast<int64_t>(sizeof(Element)), x.rows, x.cols);
}

absl::Status Transpose(const Matrices& x, void* y, CUstream_st* stream) {
  switch (SizeOf(x.type)) {
    case 1:
      Enqueue<uint8_t>(x, y, stream);
      break;
    case 2:
      Enqueue<uint16_t>(x, y, stream);
      break;
    case 4:
      Enqueue<uint32_t>(x, y, stream);
      break;
    default:
      Enqueue<uint64_t>(x, y, stream);
  }
  return CudaStatus(cudaGetLastError(), "launch of an operand's transpose");
}

Matrices StoredA(const Problem& p, const Operands& o) {
  return {.data = o.a,
          .ld = o.lda,
          .stride = o.stride_a,
          .rows = p.trans_a ? p.k : p.m,
          .cols = p.trans_a ? p.m : p.k,
          .count = o.stride_a == 0 ? 1 : p.batch,
          .type = p.types.a};
}

// The products of a group by m have Bs of their own, and one A.
Matrices StoredB(const Problem& p, const Operands& o) {
  const int64_t products =
      p.grouped == GroupedBy::kM ? static_cast<int64_t>(p.extents.size()) : p.batch;
  return {.data = o.b,
          .ld = o.ldb,
          .stride = o.stride_b,
          .rows = p.trans_b ? p.n : p.k,
          .cols = p.trans_b ? p.k : p.n,
          .count = o.stride_b == 0 ? 1 : products,
          .type = p.types.b};
}

// Operands that products do not share: they need the most scratch memory.
constexpr Operands kOfItsOwn{.stride_a = 1, .stride_b = 1};

}  // namespace

size_t TransposeScratchBytes(const Problem& problem, const LoadLayout& layout) {
  size_t bytes = 0;
  if (problem.trans_a != layout.trans_a) bytes += TransposedBytes(StoredA(problem, kOfItsOwn));
  if (problem.trans_b != layout.trans_b) bytes += TransposedBytes(StoredB(problem, kOfItsOwn));
  return bytes;
}

absl::StatusOr<TransposedProduct> TransposeOperands(const Launch& launch,
                                                    const LoadLayout& layout) {
  TransposedProduct transposed{launch.problem, launch.operands};
  if (const size_t bytes = TransposeScratchBytes(launch.problem, layout);
      bytes > launch.workspace.bytes) {
    return absl::InternalError(absl::StrCat("the transposed operands have ", bytes,
                                            " bytes, the scratch memory for them ",
                                            launch.workspace.bytes));
  }
  auto* scratch = static_cast<std::byte*>(launch.workspace.data);
  const auto transpose = [&](const Matrices& x, const void*& data, int64_t& ld, int64_t& stride) {
    const absl::Status status = Transpose(x, scratch, launch.stream);
    data = scratch;
    ld = TransposedPitch(x) / static_cast<int64_t>(SizeOf(x.type));
    if (stride != 0) stride = x.cols * ld;
    scratch += TransposedBytes(x);
    return status;
  };
  const bool transpose_a = launch.problem.trans_a != layout.trans_a;
  const bool transpose_b = launch.problem.trans_b != layout.trans_b;
  if (transpose_a) {
    const Matrices a = StoredA(launch.problem, launch.operands);
    Operands& o = transposed.operands;
    if (absl::Status status = transpose(a, o.a, o.lda, o.stride_a); !status.ok()) return status;
    transposed.problem.trans_a = layout.trans_a;
  }
  if (transpose_b) {
    const Matrices b = StoredB(launch.problem, launch.operands);
    Operands& o = transposed.operands;
    if (absl::Status status = transpose(b, o.b, o.ldb, o.stride_b); !status.ok()) return status;
    transposed.problem.trans_b = layout.trans_b;
  }
  if ((transpose_a || transpose_b) && launch.transposed != nullptr) {
    const absl::Status status =
        CudaStatus(cudaEventRecord(launch.transposed->event, launch.stream), "cudaEventRecord");
    if (!status.ok()) return status;
    launch.transposed->recorded = true;
  }
  return transposed;
}

}  // namespace gemm
