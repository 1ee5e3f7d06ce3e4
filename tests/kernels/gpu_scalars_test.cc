// Special scalars and elements through every row that the GPU runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/kernels/gpu.h"
#include "tests/kernels/special_values.h"

namespace gemm::testing {
namespace {

using MakeCases = std::vector<SpecialCase> (*)(const Types&, const ProductShape&);

// The result of `make`, made once for all rows.
template <MakeCases make>
const std::vector<SpecialCase>& Cached(const Types& types, const ProductShape& shape) {
  using Key = std::tuple<DType, DType, DType, Compute, int64_t, int64_t, int64_t>;
  static auto* const made = new std::map<Key, std::vector<SpecialCase>>;
  const Key key{types.a, types.b, types.d, types.compute, shape.m, shape.n, shape.k};
  const auto found = made->find(key);
  return found != made->end() ? found->second : (*made)[key] = make(types, shape);
}

class GpuScalars : public GpuTest, public ::testing::WithParamInterface<const Kernel*> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const absl::Status status = CheckDevice(kernel(), Gpu::Get()->caps());
    if (!status.ok()) GTEST_SKIP() << "skipped: " << status.message();
  }

  const Kernel& kernel() const { return *GetParam(); }
  bool of_library() const { return kernel().tile_m == 0; }

  static absl::Status Run(const Kernel& kernel, ProductData& data) {
    return RunOnGpu(kernel, data, Defaults(kernel), 16);
  }

  // Returns the faults of all cases.
  std::string Check(const std::vector<SpecialCase>& cases) const {
    std::string wrong;
    for (const SpecialCase& special : cases) {
      const Compute compute = special.data.product.problem.types.compute;
      const bool tf32 = compute == Compute::kTF32 || compute == Compute::kF32x3;
      const bool may_flush = special.subnormal && (of_library() || tf32);
      wrong += CheckSpecial(kernel(), special, Run, !may_flush);
    }
    return wrong;
  }
};

// Whole runs of 16 bytes along a row of D, and none.
TEST_P(GpuScalars, SpecialScalarsAndElements) {
  for (const Types& types : kernel().types) {
    for (const ProductShape& shape : {ProductShape{37, 48, 35}, ProductShape{21, 19, 40}}) {
      EXPECT_EQ(Check(Cached<SpecialCases>(types, shape)), "");
    }
  }
}

// More than a tile, so that the paths for whole tiles are taken, and a k that refills the pipeline
// and ends within a k-tile.
TEST_P(GpuScalars, SpecialElementsAroundATile) {
  if (of_library()) GTEST_SKIP() << "skipped: a library chooses the tile";
  const ProductShape shape{kernel().tile_m + 8, kernel().tile_n + 8, 2 * kernel().tile_k + 3};
  for (const Types& types : kernel().types) {
    EXPECT_EQ(Check(Cached<SpecialElementCases>(types, shape)), "");
  }
}

TEST_P(GpuScalars, ScalarsWithoutRoomInTheirTypeAreRefused) {
  for (const Types& types : kernel().types) {
    EXPECT_EQ(CheckRefusedScalars(kernel(), types, Run), "");
  }
}

std::vector<const Kernel*> CudaKernels() {
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : Catalogue()) {
    if (kernel->target == Target::kCuda) kernels.push_back(kernel);
  }
  return kernels;
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuScalars, ::testing::ValuesIn(CudaKernels()),
                         [](const ::testing::TestParamInfo<const Kernel*>& info) {
                           return std::string(info.param->name);
                         });

}  // namespace
}  // namespace gemm::testing
