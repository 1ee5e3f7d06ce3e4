#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/core/cuda_status.h"
#include "kernels/core/without_product.h"
#include "kernels/epilogue/epilogue.cuh"
#include "kernels/epilogue/in_place.h"

namespace gemm {
namespace {

constexpr int kThreads = 256;
// Enough blocks to fill any GPU; larger matrices are strided over.
constexpr int64_t kMaxBlocks = 65536;

template <DType kD>
__global__ void InPlaceKernel(const Epilogue<kD> first, const BatchStrides strides, int64_t m,
                              int64_t n) {
  const Epilogue<kD> epilogue = OfProduct(first, strides, blockIdx.y);
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; e < m * n;
       e += step) {
    const int64_t i = e / n, j = e % n;
    epilogue.Store(Epilogue<kD>::Element::Load(epilogue.d[i * epilogue.ldd + j]), i, j);
  }
}

template <DType kD, DType kAccumulator>
__global__ void AccumulatorsKernel(const Epilogue<kD> first, const BatchStrides strides,
                                   const typename DeviceElement<kAccumulator>::Type* accumulators,
                                   int64_t stride, int64_t ld, int64_t m, int64_t n) {
  const Epilogue<kD> epilogue = OfProduct(first, strides, blockIdx.y);
  accumulators += blockIdx.y * stride;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; e < m * n;
       e += step) {
    const int64_t i = e / n, j = e % n;
    using Scalar = typename Epilogue<kD>::Scalar;
    const auto accumulator = DeviceElement<kAccumulator>::Load(accumulators[i * ld + j]);
    epilogue.Store(static_cast<Scalar>(accumulator), i, j);
  }
}

template <DType kD>
__global__ void WithoutProductKernel(const Epilogue<kD> first, const BatchStrides strides,
                                     int64_t m, int64_t n) {
  const Epilogue<kD> epilogue = OfProduct(first, strides, blockIdx.y);
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t e = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; e < m * n;
       e += step) {
    epilogue.Store(typename Epilogue<kD>::Scalar(), e / n, e % n);
  }
}

dim3 BlocksFor(const Problem& problem) {
  return {static_cast<unsigned>(
              std::min((problem.m * problem.n + kThreads - 1) / kThreads, kMaxBlocks)),
          static_cast<unsigned>(problem.batch)};
}

template <DType kD, DType kAccumulator>
absl::Status Finish(const Problem& problem, const Operands& operands,
                    const AccumulatorProduct& accumulators, cudaStream_t stream) {
  using Accumulator = typename DeviceElement<kAccumulator>::Type;
  AccumulatorsKernel<kD, kAccumulator><<<BlocksFor(problem), kThreads, 0, stream>>>(
      MakeEpilogue<kD>(problem, operands), StridesOf(operands),
      static_cast<const Accumulator*>(accumulators.operands.d), accumulators.operands.stride_d,
      accumulators.operands.ldd, problem.m, problem.n);
  return CudaStatus(cudaGetLastError(), "launch of the pass over the accumulators");
}

template <DType kD>
absl::Status Apply(Problem problem, const Operands& operands, cudaStream_t stream) {
  problem.alpha = 1;
  problem.beta = 0;
  InPlaceKernel<kD><<<BlocksFor(problem), kThreads, 0, stream>>>(
      MakeEpilogue<kD>(problem, operands), StridesOf(operands), problem.m, problem.n);
  return CudaStatus(cudaGetLastError(), "launch of the bias and activation pass");
}

template <DType kD>
absl::Status WithoutProduct(const Problem& problem, const Operands& operands, cudaStream_t stream) {
  WithoutProductKernel<kD><<<BlocksFor(problem), kThreads, 0, stream>>>(
      MakeEpilogue<kD>(problem, operands), StridesOf(operands), problem.m, problem.n);
  return CudaStatus(cudaGetLastError(), "launch of the epilogue without a product");
}

// Calls pass.operator()<kD>() for the output types of a library's rows.
template <class Pass>
absl::Status ForOutputType(DType d, const Pass& pass) {
  switch (d) {
    case DType::kF64:
      return pass.template operator()<DType::kF64>();
    case DType::kF32:
      return pass.template operator()<DType::kF32>();
    case DType::kF16:
      return pass.template operator()<DType::kF16>();
    case DType::kBF16:
      return pass.template operator()<DType::kBF16>();
    case DType::kS32:
      return pass.template operator()<DType::kS32>();
    default:
      return absl::UnimplementedError(
          absl::StrCat("output dtype ", Name(d), " has no pass of its own"));
  }
}

// Over accumulators of a type that D need not have.
template <DType kAccumulator>
absl::Status FinishNarrowed(const Problem& problem, const Operands& operands,
                            const AccumulatorProduct& accumulators, cudaStream_t stream) {
  switch (problem.types.d) {
    case DType::kF16:
      return Finish<DType::kF16, kAccumulator>(problem, operands, accumulators, stream);
    case DType::kBF16:
      return Finish<DType::kBF16, kAccumulator>(problem, operands, accumulators, stream);
    default:
      return Finish<DType::kF32, kAccumulator>(problem, operands, accumulators, stream);
  }
}

}  // namespace

size_t AccumulatorScratchBytes(const Problem& problem) {
  return NeedsAccumulatorScratch(problem) ? AccumulatorBytes(problem) : 0;
}

size_t AccumulatorBytes(const Problem& problem) {
  return static_cast<size_t>(problem.batch) * static_cast<size_t>(problem.m) *
         static_cast<size_t>(PitchBytes(problem.n, AccumulatorType(problem)));
}

AccumulatorProduct MakeAccumulatorProduct(const Problem& problem, const Operands& operands,
                                          const Workspace& scratch) {
  const DType type = AccumulatorType(problem);
  AccumulatorProduct accumulators{problem, operands};
  accumulators.problem.types.d = type;
  accumulators.problem.alpha = 1;
  accumulators.problem.beta = 0;
  accumulators.problem.bias = BiasAxis::kNone;
  accumulators.problem.activation = Activation::kNone;
  accumulators.operands.c = nullptr;
  accumulators.operands.bias = nullptr;
  accumulators.operands.d = scratch.data;
  accumulators.operands.ldd = PitchBytes(problem.n, type) / static_cast<int64_t>(SizeOf(type));
  accumulators.operands.stride_c = 0;
  accumulators.operands.stride_bias = 0;
  accumulators.operands.stride_d = problem.m * accumulators.operands.ldd;
  return accumulators;
}

absl::Status FinishFromAccumulators(const Problem& problem, const Operands& operands,
                                    const AccumulatorProduct& accumulators, CUstream_st* stream) {
  // With f16 or f64 accumulators D has their type.
  if (AccumulatorType(problem) == DType::kF16) {
    return Finish<DType::kF16, DType::kF16>(problem, operands, accumulators, stream);
  }
  if (AccumulatorType(problem) == DType::kF64) {
    return Finish<DType::kF64, DType::kF64>(problem, operands, accumulators, stream);
  }
  if (AccumulatorType(problem) != DType::kS32) {
    return FinishNarrowed<DType::kF32>(problem, operands, accumulators, stream);
  }
  if (problem.types.d == DType::kS32) {
    return Finish<DType::kS32, DType::kS32>(problem, operands, accumulators, stream);
  }
  return FinishNarrowed<DType::kS32>(problem, operands, accumulators, stream);
}

absl::Status ApplyBiasAndActivation(const Problem& problem, const Operands& operands,
                                    CUstream_st* stream) {
  return ForOutputType(problem.types.d,
                       [&]<DType kD>() { return Apply<kD>(problem, operands, stream); });
}

absl::Status ApplyWithoutProduct(const Problem& problem, const Operands& operands,
                                 CUstream_st* stream) {
  return ForOutputType(problem.types.d,
                       [&]<DType kD>() { return WithoutProduct<kD>(problem, operands, stream); });
}

}  // namespace gemm
