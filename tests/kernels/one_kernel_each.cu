// One kernel of each family that has code of its own for some architectures. device_code_test.py
// compiles this file for several architectures and looks at the code.
#include "kernels/core/cuda_caps.cu"
#include "kernels/grouped/config.h"
#include "kernels/grouped/kernel.cuh"
#include "kernels/hopper/configs.h"
#include "kernels/hopper/f32/config.h"
#include "kernels/hopper/f32/kernel.cuh"
#include "kernels/hopper/kernel.cuh"
#include "kernels/hopper/schedule.cuh"
#include "kernels/mma/kernel.cuh"
#include "kernels/mma/tables.h"
#include "kernels/simt/naive.cuh"
#include "kernels/wmma/kernel.cuh"
#include "kernels/wmma/tables.h"

namespace gemm {

// The test finds the kernels by the names of these.
struct HopperVariant {
  static constexpr HopperConfig kConfig = Hopper16BitConfigs(DType::kF16)[13];
};
struct HopperF32Variant {
  static constexpr HopperF32Config kConfig = kHopperF32Configs[3];
};
struct GroupedVariant {
  static constexpr GroupedConfig kConfig = Grouped16BitConfigs(DType::kF16)[5];
};
struct GroupedFp8Variant {
  static constexpr GroupedConfig kConfig = Grouped8BitConfigs(DType::kE4M3)[5];
};
struct WmmaVariant {
  static constexpr wmma::Config kConfig = wmma::Tf32Table::kConfigs[0];
};
struct MmaVariant {
  static constexpr mma::Config kConfig = mma::X2Table::kConfigs[0];
};
struct SimtVariant {
  static constexpr NaiveConfig kConfig = {.type = DType::kF32, .accumulate = DType::kF32};
  using Operand = DeviceElement<DType::kF32>;
};

template __global__ void HopperKernel<HopperTiles<HopperVariant>, false, true>(
    const __grid_constant__ HopperMaps, HopperTiles<HopperVariant>::Arguments,
    Epilogue<DType::kF32>, DType);
template __global__ void HopperF32Kernel<HopperTiles<HopperF32Variant>, false, true>(
    const __grid_constant__ HopperMaps, HopperTiles<HopperF32Variant>::Arguments,
    Epilogue<DType::kF32>, DType);
template __global__ void GroupedKernel<GroupedVariant>(GroupedArguments, Epilogue<DType::kF32>,
                                                       DType);
template __global__ void GroupedKernel<GroupedFp8Variant>(GroupedArguments, Epilogue<DType::kF32>,
                                                          DType);
template __global__ void NaiveKernel<SimtVariant>(StridedOperand<float>, StridedOperand<float>,
                                                  Epilogue<DType::kF32>, int64_t, int64_t, int64_t,
                                                  int64_t);
template __global__ void wmma::WmmaKernel<WmmaVariant>(
    const __grid_constant__ wmma::Arguments<DType::kF32>);
template __global__ void mma::MmaKernel<MmaVariant>(const __grid_constant__ mma::Arguments);

}  // namespace gemm
