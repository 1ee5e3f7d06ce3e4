// Marks a function for the host and the GPU alike; nothing outside nvcc.
#pragma once

#ifdef __CUDACC__
#define GEMM_HOST_DEVICE __host__ __device__
#else
#define GEMM_HOST_DEVICE
#endif
