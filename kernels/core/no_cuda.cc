// The functions of the CUDA sources, for a build without them.
#include "gemm/check.h"
#include "gemm/estimates.h"
#include "gemm/generate.h"
#include "gemm/libraries.h"
#include "gemm/machine.h"
#include "kernels/core/without_product.h"

namespace gemm {
namespace {

absl::Status NoCuda() {
  return absl::UnavailableError("this build has no CUDA: it serves the host device only");
}

}  // namespace

absl::Status GenerateCuda(const GeneratorSpec&, const GeneratorTarget&, CUstream_st*) {
  return NoCuda();
}

absl::Status CheckCuda(const Check&, CheckOutcome*, CUstream_st*) { return NoCuda(); }

absl::Status FinishCuda(const Problem&, const Operands&, void*, CUstream_st*) { return NoCuda(); }

absl::Status ApplyWithoutProduct(const Problem&, const Operands&, CUstream_st*) { return NoCuda(); }

DeviceEstimates BuiltInEstimates(absl::string_view, int) { return {}; }

absl::StatusOr<Machine> CudaMachine(int) { return NoCuda(); }

absl::StatusOr<std::shared_ptr<Libraries>> CreateLibraries(CUstream_st*) { return NoCuda(); }

}  // namespace gemm
