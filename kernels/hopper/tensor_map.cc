#include "kernels/hopper/tensor_map.h"

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/hopper/box.h"

namespace gemm {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver's function, without linking to the driver: so programs start without one, too.
Encode FindEncode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned kVersion = 12000;  // of CUDA, which brought it
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                             kVersion, cudaEnableDefault, &found);
  if (error != cudaSuccess || found != cudaDriverEntryPointSuccess) return nullptr;
  return reinterpret_cast<Encode>(function);
}

CUtensorMapDataType TmaType(DType type, Compute compute) {
  switch (type) {
    case DType::kF32:
      return compute == Compute::kTF32 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
                                       : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::kS32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case DType::kF16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::kBF16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    default:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  }
}

}  // namespace

absl::StatusOr<CUtensorMap> DescribeToTma(const TiledMatrices& matrices) {
  static const Encode encode = FindEncode();
  if (encode == nullptr) {
    return absl::FailedPreconditionError("the driver has no cuTensorMapEncodeTiled");
  }
  const cuuint64_t size[] = {static_cast<cuuint64_t>(matrices.columns),
                             static_cast<cuuint64_t>(matrices.rows),
                             static_cast<cuuint64_t>(matrices.count)};
  const cuuint64_t pitches[] = {
      static_cast<cuuint64_t>(matrices.pitch),
      static_cast<cuuint64_t>(matrices.count == 1 ? matrices.rows * matrices.pitch
                                                  : matrices.stride)};
  const bool swizzled = matrices.box_columns == 0;
  const cuuint32_t box[] = {swizzled ? static_cast<cuuint32_t>(kBoxRowBytes / SizeOf(matrices.type))
                                     : static_cast<cuuint32_t>(matrices.box_columns),
                            static_cast<cuuint32_t>(matrices.box_rows), 1};
  const cuuint32_t every[] = {1, 1, 1};
  CUtensorMap map;
  // No promotion: loads of more than a box has cost skinny products 5% to 8% of their bandwidth.
  const CUresult result = encode(
      &map, TmaType(matrices.type, matrices.compute), /*tensorRank=*/3,
      const_cast<void*>(matrices.data), size, pitches, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    return absl::InternalError(absl::StrCat("cuTensorMapEncodeTiled of ", matrices.count, " times ",
                                            matrices.rows, " x ", matrices.columns,
                                            " elements in rows of ", matrices.pitch,
                                            " bytes: error ", static_cast<int>(result)));
  }
  return map;
}

}  // namespace gemm
