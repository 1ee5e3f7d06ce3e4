#include "kernels/bench/spin.h"
#include "kernels/core/cuda_status.h"

namespace gemm::bench {
namespace {

__device__ int64_t GlobalNanoseconds() {
  int64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void SpinKernel(int64_t nanoseconds) {
  const int64_t start = GlobalNanoseconds();
  while (GlobalNanoseconds() - start < nanoseconds) __nanosleep(500);
}

}  // namespace

absl::Status EnqueueSpin(int64_t nanoseconds, CUstream_st* stream) {
  SpinKernel<<<1, 1, 0, stream>>>(nanoseconds);
  return CudaStatus(cudaGetLastError(), "launch of the spin kernel");
}

}  // namespace gemm::bench
