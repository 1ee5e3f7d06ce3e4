// Tests of the catalogue's rows for GPUs. They need a build with CUDA, but no GPU.
#pragma once

#include <gtest/gtest.h>

#include "gemm/catalogue.h"

namespace gemm::testing {

class CudaKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!FindKernel("cublas_f32").ok()) GTEST_SKIP() << "this build has no CUDA kernels";
  }
};

}  // namespace gemm::testing
