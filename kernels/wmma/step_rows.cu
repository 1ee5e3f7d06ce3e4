// The WMMA steps from one fragment a warp to the double-buffered kernels.
#include "kernels/core/families.h"
#include "kernels/wmma/rows.cuh"
#include "kernels/wmma/variants.h"

namespace gemm {
namespace wmma {

struct StepTable {
  static constexpr Config kConfigs[] = {
      Naive(),         Naive().F32(16),        OneFragment(),    OneFragment().F32(4),
      Warp2x4(),       Warp2x4().F32(2),       Async(),          Async().F32(2),
      AsyncPadded(),   AsyncPadded().F32(2),   DoubleBuffer(),   DoubleBuffer().F32(2),
      SixteenWarps(),  SixteenWarps().F32(2),  RegisterBuffer(), RegisterBuffer().F32(2),
      Fragments32x8(), Fragments32x8().F32(2),
  };
};

namespace {
constexpr auto kRows = MakeWmmaRows<StepTable>();
}  // namespace

}  // namespace wmma

absl::Span<const Kernel> WmmaStepRows() { return wmma::kRows; }

}  // namespace gemm
