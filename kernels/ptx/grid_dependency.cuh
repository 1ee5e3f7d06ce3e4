// Kernels of a stream that overlap: where the launch asks for it (programmatic stream
// serialisation), a kernel may begin while the one before it ends (PTX ISA 7.8, sm_90).
#pragma once

namespace gemm::ptx {

// Waits until all that was before this kernel in its stream is done and can be seen. Before this
// nothing touches memory that others use.
__device__ __forceinline__ void AwaitKernelBefore() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// The next kernel may begin when all blocks have come here, or have ended.
__device__ __forceinline__ void AllowNextKernel() {
  asm volatile("griddepcontrol.launch_dependents;");
}

}  // namespace gemm::ptx
