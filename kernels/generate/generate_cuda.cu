#include <algorithm>

#include "gemm/generate.h"
#include "kernels/core/cuda_status.h"
#include "kernels/generate/element_function.h"

namespace gemm {
namespace {

constexpr int kThreads = 256;
// Enough blocks to fill any GPU; longer matrices are strided over.
constexpr int64_t kMaxBlocks = 16384;

template <class To>
__global__ void FillKernel(GeneratorSpec spec, GeneratorLines lines, void* data,
                           int64_t pitch_bytes) {
  const int64_t count = lines.lines * lines.length;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += step) {
    GenerateElement<To>(spec, lines, data, pitch_bytes, i / lines.length, i % lines.length);
  }
}

}  // namespace

absl::Status GenerateCuda(const GeneratorSpec& spec, const GeneratorTarget& target,
                          CUstream_st* stream) {
  return VisitGenerated(target.type, [&]<class To>() {
    const GeneratorLines lines = LinesOf(target);
    const int64_t count = lines.lines * lines.length;
    if (count == 0) return absl::OkStatus();
    const int64_t blocks = std::min((count + kThreads - 1) / kThreads, kMaxBlocks);
    FillKernel<To><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(spec, lines, target.data,
                                                                           target.pitch_bytes);
    return CudaStatus(cudaGetLastError(), "launch of the matrix generator");
  });
}

}  // namespace gemm
