// The features that device code may use, by the architecture that it is compiled for. Only this
// file asks the compiler. DeviceCode (gemm/kernel.h) tells the host the same.
#pragma once

// wgmma, and registers that move between warpgroups: sm_90a, and no other.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define GEMM_HAS_WGMMA 1
#else
#define GEMM_HAS_WGMMA 0
#endif

// mma.sync of fp8.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define GEMM_HAS_FP8_MMA 1
#else
#define GEMM_HAS_FP8_MMA 0
#endif
