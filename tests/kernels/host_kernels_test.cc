// Every host row over every type it takes, against the oracle.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <thread>

#include "gemm/run.h"
#include "tests/kernels/batch_case.h"
#include "tests/kernels/group_case.h"
#include "tests/kernels/product_case.h"
#include "tests/kernels/row_block_case.h"
#include "tests/kernels/special_values.h"

namespace gemm::testing {
namespace {

struct Row {
  const Kernel* kernel;
  Types types;
};

std::vector<Row> HostRows() {
  std::vector<Row> rows;
  for (const Kernel* kernel : Catalogue()) {
    if (kernel->target != Target::kHost) continue;
    for (const Types& types : kernel->types) rows.push_back({kernel, types});
  }
  return rows;
}

std::string RowName(const ::testing::TestParamInfo<Row>& info) {
  const Types& t = info.param.types;
  std::string name(info.param.kernel->name);
  for (const absl::string_view part : {Name(t.a), Name(t.b), Name(t.d), Name(t.compute)}) {
    name += "_" + std::string(part);
  }
  return name;
}

class HostKernel : public ::testing::TestWithParam<Row> {
 protected:
  void Check(const ProductCase& product) {
    EXPECT_EQ(CheckProduct(*GetParam().kernel, product, RunOnHost, 1 << 20), "");
  }
};

TEST_P(HostKernel, RandomShapesLayoutsAndEpilogues) {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<int64_t> dim(1, 70);
  for (int round = 0; round < 60; ++round) {
    Check(RandomCase(GetParam().types, dim(random), dim(random), dim(random), random));
  }
}

// One element, vectors, and one past each block of the blocked loops.
TEST_P(HostKernel, EdgeShapes) {
  std::mt19937_64 random(8);
  const int64_t shapes[][3] = {{1, 1, 1},    {1, 257, 3},    {259, 1, 5},
                               {1, 1, 1031}, {65, 129, 129}, {64, 128, 128},
                               {3, 1025, 2}, {1025, 2, 3},   {2, 3, 1025}};
  for (const auto& [m, n, k] : shapes) {
    Check(RandomCase(GetParam().types, m, n, k, random));
    Check(RandomCase(GetParam().types, m, n, k, random));
  }
}

TEST_P(HostKernel, EveryTransposeBiasAndActivation) {
  uint64_t seed = 1;
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const BiasAxis bias : {BiasAxis::kNone, BiasAxis::kColumns, BiasAxis::kRows}) {
        for (const Activation activation :
             {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kLeakyRelu}) {
          ProductCase product;
          product.problem = {.m = 13,
                             .n = 11,
                             .k = 17,
                             .types = GetParam().types,
                             .trans_a = trans_a,
                             .trans_b = trans_b,
                             .alpha = 1.25,
                             .beta = seed % 3 == 0 ? 0.0 : -0.75,
                             .bias = bias,
                             .activation = activation};
          product.c_is_d = seed % 3 == 1;
          product.extra_pitch_bytes = 32;
          product.seed = seed++;
          Check(product);
        }
      }
    }
  }
}

TEST_P(HostKernel, ExactElements) {
  std::mt19937_64 random(19);
  for (const int64_t k : {1, 33, 259, 1024, 4099, 16387}) {
    Check(ExactCase(GetParam().types, 17, 24, k, random));
  }
}

// The second shape is beyond the size from which OpenBLAS takes other paths.
TEST_P(HostKernel, SpecialScalarsAndElements) {
  for (const ProductShape& shape : {ProductShape{13, 11, 19}, ProductShape{131, 128, 130}}) {
    for (const SpecialCase& special : SpecialCases(GetParam().types, shape)) {
      EXPECT_EQ(CheckSpecial(*GetParam().kernel, special, RunOnHost, true), "");
    }
  }
}

TEST_P(HostKernel, ScalarsWithoutRoomInTheirTypeAreRefused) {
  EXPECT_EQ(CheckRefusedScalars(*GetParam().kernel, GetParam().types, RunOnHost), "");
}

TEST_P(HostKernel, SameBitsEveryTime) {
  std::mt19937_64 random(9);
  const ProductCase product = RandomCase(GetParam().types, 61, 67, 71, random);
  ProductData first(product);
  ASSERT_TRUE(RunOnHost(*GetParam().kernel, first).ok());
  for (int run = 0; run < 5; ++run) {
    ProductData again(product);
    ASSERT_TRUE(RunOnHost(*GetParam().kernel, again).ok());
    ASSERT_EQ(again.d.bytes(), first.d.bytes());
  }
}

TEST_P(HostKernel, ProductsOfABatchAreThoseAlone) {
  std::mt19937_64 random(14);
  const Types& types = GetParam().types;
  const auto check = [&](const ProductCase& batch) {
    EXPECT_EQ(CheckBatchOf(*GetParam().kernel, batch, RunOnHost), "");
  };
  for (const int64_t products : {2, 3, 17}) {
    for (int round = 0; round < 4; ++round) check(RandomBatch(types, 9, 13, 5, products, random));
  }
  check(RandomBatch(types, 3, 1, 2, 1000, random));
  check(RandomBatch(types, 1, 2, 1, kMaxBatch, random));
  ProductCase nothing = RandomBatch(types, 5, 6, 7, 3, random);
  nothing.problem.alpha = 0;
  nothing.problem.beta = 0.5;
  nothing.c_is_d = false;
  check(nothing);
}

TEST_P(HostKernel, RowsOfABlockAreThoseOfTheWhole) {
  if (!GetParam().kernel->row_blocks) GTEST_SKIP() << "skipped: it promises no row blocks";
  std::mt19937_64 random(15);
  for (const int64_t block_rows : {1, 2, 7, 16}) {
    const ProductCase whole = RandomRowsCase(GetParam().types, 37, 19, 41, random);
    EXPECT_EQ(CheckRowBlocksOf(*GetParam().kernel, whole, RunOnHost, block_rows), "");
  }
}

TEST_P(HostKernel, BlockScales) {
  const Types& types = GetParam().types;
  if (!GetParam().kernel->block_scales || SizeOf(types.a) > 1 || types.compute == Compute::kS32) {
    GTEST_SKIP() << "skipped: it takes no block scales with these types";
  }
  std::mt19937_64 random(21);
  const int64_t shapes[][3] = {{1, 1, 1},       {1, 1, 129},     {37, 41, 128},  {130, 129, 127},
                               {129, 257, 385}, {256, 128, 512}, {2, 300, 1100}, {65, 3, 2060}};
  for (const ScaleBlocks of_a : {ScaleBlocks::kLines, ScaleBlocks::kTiles}) {
    for (const ScaleBlocks of_b : {ScaleBlocks::kLines, ScaleBlocks::kTiles}) {
      for (const auto& [m, n, k] : shapes) {
        Check(WithBlockScales(RandomCase(types, m, n, k, random), of_a, of_b, random));
        Check(WithBlockScales(ExactCase(types, m, n, k, random), of_a, of_b, random));
      }
    }
  }
}

TEST_P(HostKernel, ProductsOfAGroupAreThoseAlone) {
  std::mt19937_64 random(15);
  const Types& types = GetParam().types;
  const auto check = [&](const ProductCase& group) {
    EXPECT_EQ(CheckGroupOf(*GetParam().kernel, group, RunOnHost), "");
  };
  for (const std::vector<int64_t>& extents : std::vector<std::vector<int64_t>>{
           {1}, {0, 5, 0, 0, 3, 0}, {4, 4, 4}, {17, 1, 0, 9}, RandomExtents(40, 6, random)}) {
    for (int round = 0; round < 3; ++round) {
      check(RandomGroupByM(types, extents, 13, 5, random));
      check(RandomGroupByK(types, 7, 11, extents, random));
    }
  }
  check(RandomGroupByM(types, RandomExtents(kMaxGroup, 2, random), 2, 1, random));
  check(RandomGroupByK(types, 1, 2, RandomExtents(kMaxGroup, 2, random), random));
  for (const BiasAxis bias : {BiasAxis::kColumns, BiasAxis::kRows}) {
    ProductCase nothing = RandomGroupByM(types, {3, 0, 2}, 6, 7, random);
    nothing.problem.alpha = 0;
    nothing.problem.beta = 0.5;
    nothing.problem.bias = bias;
    check(nothing);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, HostKernel, ::testing::ValuesIn(HostRows()), RowName);

TEST(HostKernels, RunConcurrently) {
  const Kernel& kernel = **FindKernel("host_openblas");
  std::vector<std::string> wrong(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int round = 0; round < 10; ++round) {
        const ProductCase product = RandomCase(kernel.types[t], 90, 80, 70, random);
        wrong[t] += CheckProduct(kernel, product, RunOnHost, 1000);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& what : wrong) EXPECT_EQ(what, "");
}

TEST(HostKernels, LargerThanTheOpenblasBlock) {
  std::mt19937_64 random(10);
  const Kernel& kernel = **FindKernel("host_openblas");
  const Types types{DType::kBF16, DType::kBF16, DType::kF32, Compute::kF32};
  const ProductCase product = RandomCase(types, 1030, 1027, 1029, random);
  EXPECT_EQ(CheckProduct(kernel, product, RunOnHost, 500), "");
}

TEST(HostKernels, ABatchOfAKernelThatTakesNoneIsAnError) {
  Kernel single = **FindKernel("host_reference");
  single.batches = false;
  ProductCase product;
  product.problem = {.m = 2, .n = 2, .k = 2, .batch = 3};
  ProductData data(product);
  const absl::Status status = RunOnHost(single, data);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "batch_count is 3, but kernel host_reference takes one product at a time");
}

// A small one, which is right.
ProductCase ScaledCase() {
  ProductCase product;
  product.problem = {.m = 2,
                     .n = 2,
                     .k = 2,
                     .types = {DType::kE4M3, DType::kE4M3, DType::kF32, Compute::kF32},
                     .scales_a = ScaleBlocks::kLines,
                     .scales_b = ScaleBlocks::kTiles};
  return product;
}

TEST(HostKernels, BlockScalesOfAKernelThatTakesNoneAreAnError) {
  Kernel without = **FindKernel("host_reference");
  without.block_scales = false;
  ProductData data(ScaledCase());
  const absl::Status status = RunOnHost(without, data);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "scales_a and scales_b are given, but kernel host_reference takes no block scales; "
            "ListKernels gives those that do (block_scales)");
}

TEST(HostKernels, BlockScalesAreOfBothOperandsOfASingleFp8Product) {
  struct Bad {
    const char* sentence;
    std::function<void(Problem&)> change;
  };
  static constexpr int64_t kExtents[] = {2};
  const Bad bads[] = {
      {"the other has none", [](Problem& p) { p.scales_a = ScaleBlocks::kNone; }},
      {"the other has none", [](Problem& p) { p.scales_b = ScaleBlocks::kNone; }},
      {"single products", [](Problem& p) { p.batch = 2; }},
      {"single products",
       [](Problem& p) {
         p.grouped = GroupedBy::kM;
         p.extents = kExtents;
       }},
      {"one is f32", [](Problem& p) { p.types.a = p.types.b = DType::kF32; }},
      {"one is s8",
       [](Problem& p) {
         p.types = {DType::kS8, DType::kS8, DType::kF32, Compute::kS32};
       }},
  };
  for (const absl::string_view name : {"host_reference", "host_openblas"}) {
    for (const Bad& bad : bads) {
      ProductCase product = ScaledCase();
      bad.change(product.problem);
      ProductData data(product);
      const absl::Status status = RunOnHost(**FindKernel(name), data);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name << bad.sentence;
      EXPECT_NE(status.message().find(bad.sentence), absl::string_view::npos) << status;
    }
  }
}

// One mark cannot tell when the transposes of each product are done.
TEST(HostKernels, AGroupThatIsTakenApartMarksNoTransposes) {
  static int launched;
  launched = 0;
  Kernel kernel = **FindKernel("host_reference");
  kernel.launch = [](const Launch& launch) {
    ++launched;
    return launch.transposed == nullptr ? absl::OkStatus() : absl::InternalError("is marked");
  };
  const int64_t extents[] = {2, 3};
  const Problem problem = {
      .m = 5, .n = 4, .k = 6, .grouped = GroupedBy::kM, .extents = absl::MakeConstSpan(extents)};
  const Operands operands;
  TransposeMark mark;
  EXPECT_TRUE(
      RunProduct(kernel, {.problem = problem, .operands = operands, .transposed = &mark}).ok());
  EXPECT_EQ(launched, 2);
}

TEST(HostKernels, DimensionBeyondOpenblasIsAnError) {
  ProductCase product;
  product.problem = {.m = 1, .n = 1, .k = 1};
  ProductData data(product);
  data.product.problem.k = int64_t{1} << 31;
  const absl::Status status = RunOnHost(**FindKernel("host_openblas"), data);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "k is 2147483648; kernel host_openblas takes at most 2147483647");
}

}  // namespace
}  // namespace gemm::testing
