// Every row of the catalogue that the GPU runs, against the oracle on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/batch_case.h"
#include "tests/kernels/gpu.h"
#include "tests/kernels/group_case.h"
#include "tests/kernels/product_case.h"
#include "tests/kernels/row_block_case.h"

namespace gemm::testing {
namespace {

// Values of a launch parameter that are worth a test: its ends, its default and
// some between.
std::vector<int64_t> TestedValues(const ParamSpec& spec) {
  const int64_t middle = spec.min + (spec.max - spec.min) / 2;
  const int64_t small = std::min(spec.max, spec.min + 1);
  return {spec.default_value, spec.min, small, middle, spec.max};
}

// Each parameter at one of its tested values, or anywhere in its range.
LaunchParams RandomParams(const Kernel& kernel, std::mt19937_64& random) {
  LaunchParams params = Defaults(kernel);
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const ParamSpec& spec = kernel.params[i];
    std::vector<int64_t> values = TestedValues(spec);
    values.push_back(std::uniform_int_distribution<int64_t>(spec.min, spec.max)(random));
    params[i] = values[random() % values.size()];
  }
  return params;
}

std::vector<const Kernel*> CudaKernels() {
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : Catalogue()) {
    if (kernel->target == Target::kCuda) kernels.push_back(kernel);
  }
  return kernels;
}

class GpuKernel : public GpuTest, public ::testing::WithParamInterface<const Kernel*> {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const absl::Status status = CheckDevice(kernel(), Gpu::Get()->caps());
    if (!status.ok()) GTEST_SKIP() << "skipped: " << status.message();
  }

  const Kernel& kernel() const { return *GetParam(); }

  // The combinations in turn, so that each gets its share of the cases.
  const Types& NextTypes() { return kernel().types[next_types_++ % kernel().types.size()]; }

  void Check(const ProductCase& product, const LaunchParams& params) {
    EXPECT_EQ(CheckOnGpu(kernel(), product, params), "");
  }

  // Checks that the bits are the same every time.
  void CheckBits(const ProductCase& product, const LaunchParams& params, int runs) {
    const ProductData fresh(product);
    ProductData first = fresh;
    ASSERT_EQ(RunOnGpu(kernel(), first, params, 0), absl::OkStatus());
    for (int run = 1; run < runs; ++run) {
      ProductData again = fresh;
      ASSERT_EQ(RunOnGpu(kernel(), again, params, 0), absl::OkStatus());
      ASSERT_EQ(again.d.bytes(), first.d.bytes())
          << "run " << run << " of " << product << Describe(kernel(), params);
    }
  }

  // With random parameters, layouts and epilogue.
  void CheckShape(int64_t m, int64_t n, int64_t k, std::mt19937_64& random) {
    const ProductCase product = RandomCase(NextTypes(), m, n, k, random);
    Check(product, RandomParams(kernel(), random));
  }

 private:
  size_t next_types_ = 0;
};

TEST_P(GpuKernel, RandomShapesLayoutsAndEpilogues) {
  std::mt19937_64 random(11);
  std::uniform_int_distribution<int64_t> dim(1, 300);
  for (int round = 0; round < 60; ++round) {
    CheckShape(dim(random), dim(random), dim(random), random);
  }
}

// One element, vectors, primes, sizes one off those of tiles, and one k-tile of K or a part of it.
// Also more rows or columns than a grid's second dimension has blocks.
TEST_P(GpuKernel, EdgeShapes) {
  constexpr int64_t kShapes[][3] = {
      {1, 1, 1},       {1, 1, 4099},     {1, 517, 33},      {523, 1, 31},    {2, 2, 2},
      {7, 11, 13},     {31, 33, 32},     {64, 64, 64},      {63, 65, 127},   {128, 128, 128},
      {129, 127, 129}, {256, 256, 256},  {257, 255, 259},   {8, 8, 8},       {16, 16, 16},
      {17, 1031, 3},   {1031, 17, 3},    {300, 500, 1},     {1021, 1031, 1}, {5, 30011, 37},
      {30011, 5, 37},  {3, 5, 70001},    {600011, 1, 2},    {1, 600011, 2},  {70001, 3, 5},
      {509, 521, 541}, {1023, 511, 255}, {2049, 2047, 2053}};
  std::mt19937_64 random(12);
  for (const auto& [m, n, k] : kShapes) CheckShape(m, n, k, random);
}

// Whole tiles, and sizes one element off, with a pipeline that is not filled, just filled and
// refilled.
TEST_P(GpuKernel, ShapesAroundTheTile) {
  const int64_t m = kernel().tile_m, n = kernel().tile_n, k = kernel().tile_k;
  if (m * n * k == 0) GTEST_SKIP() << "skipped: a library chooses the tile";
  const int64_t depth = std::max(kernel().stages, 1) * k;
  std::mt19937_64 random(15);
  for (const int64_t rows : {m - 1, m, m + 1, 2 * m + 1}) {
    for (const int64_t cols : {n - 1, n, 2 * n + 1}) {
      CheckShape(std::max<int64_t>(rows, 1), std::max<int64_t>(cols, 1), depth + 1, random);
    }
  }
  for (const int64_t this_k :
       {k - 1, k, k + 1, 2 * k, 2 * k + 1, depth - 1, depth, depth + k, 2 * depth + k / 2}) {
    CheckShape(m + 1, n + 1, std::max<int64_t>(this_k, 1), random);
  }
}

TEST_P(GpuKernel, BlockScales) {
  if (!kernel().block_scales) GTEST_SKIP() << "skipped: it takes no block scales";
  std::mt19937_64 random(23);
  const int64_t shapes[][3] = {{1, 1, 1},       {1, 1, 129},      {37, 41, 128},  {130, 129, 127},
                               {129, 257, 385}, {256, 128, 512},  {2, 300, 1100}, {65, 3, 2060},
                               {300, 520, 777}, {513, 511, 1024}, {64, 4099, 640}};
  for (const ScaleBlocks of_a : {ScaleBlocks::kLines, ScaleBlocks::kTiles}) {
    for (const ScaleBlocks of_b : {ScaleBlocks::kLines, ScaleBlocks::kTiles}) {
      for (const auto& [m, n, k] : shapes) {
        const ProductCase drawn = RandomCase(NextTypes(), m, n, k, random);
        Check(WithBlockScales(drawn, of_a, of_b, random), RandomParams(kernel(), random));
        const ProductCase exact =
            WithBlockScales(ExactCase(NextTypes(), m, n, k, random), of_a, of_b, random);
        Check(exact, RandomParams(kernel(), random));
        EXPECT_EQ(CheckProduct(kernel(), exact, RunInExactBuffers, 3000), "");
      }
      const ProductCase again = RandomCase(NextTypes(), 301, 259, 650, random);
      CheckBits(WithBlockScales(again, of_a, of_b, random), Defaults(kernel()), 5);
    }
  }
}

// Every order of the additions gives the same product of these elements. So a dropped tail, an
// element of k taken twice or a wrong row is seen, for any length of product and any accumulator.
// Sizes are off those of a tile, and k ends within a k-tile and within a vector of it.
TEST_P(GpuKernel, ExactElements) {
  const int64_t m = std::clamp<int64_t>(kernel().tile_m, 16, 64) + 1;
  const int64_t n = std::clamp<int64_t>(kernel().tile_n, 16, 64) + 8;
  std::mt19937_64 random(19);
  for (const Types& types : kernel().types) {
    for (const int64_t k : {int64_t{1}, int64_t{33}, 2 * std::max<int64_t>(kernel().tile_k, 16) + 3,
                            int64_t{1024}, int64_t{4099}, int64_t{16387}}) {
      Check(ExactCase(types, m, n, k, random), RandomParams(kernel(), random));
    }
  }
}

// If rows of D are whole runs of 16 bytes, kernels may take other paths, above all for a product
// that is only scaled.
TEST_P(GpuKernel, WholeRunsBesideATile) {
  const int64_t m = std::max(kernel().tile_m, 16), n = std::max(kernel().tile_n, 16);
  const int64_t k = std::max(kernel().tile_k, 16);
  for (const Types& types : kernel().types) {
    for (const int64_t rows : {m + 1, 2 * m - 8}) {
      for (const int64_t cols : {n + 8, 2 * n - 8}) {
        for (const bool in_place : {false, true}) {
          ProductCase product;
          product.problem = {.m = rows, .n = cols, .k = 2 * k + (in_place ? 3 : 0), .types = types};
          if (in_place) product.problem.beta = -0.75;
          product.c_is_d = in_place;
          Check(product, Defaults(kernel()));
        }
      }
    }
  }
}

// More tiles than run at a time, on every GPU that runs the Hopper rows: their blocks are
// persistent, and take one tile after the other. Rows of D with whole runs, and without.
TEST_P(GpuKernel, TilesInTurns) {
  if (kernel().family != "hopper") GTEST_SKIP() << "skipped: a block has one tile";
  uint64_t seed = 1;
  for (const Types& types : kernel().types) {
    for (const int transposes : {0, 1, 2, 3}) {
      ProductCase product;
      product.problem = {.m = 2056,
                         .n = transposes == 3 ? 4101 : 4104,
                         .k = 456,
                         .types = types,
                         .trans_a = transposes % 2 == 1,
                         .trans_b = transposes / 2 == 1,
                         .alpha = seed % 2 == 0 ? 0.5 : 1};
      product.elements = Elements::kExact;
      product.seed = seed++;
      Check(product, Defaults(kernel()));
    }
  }
}

TEST_P(GpuKernel, EveryLaunchParameter) {
  if (kernel().params.empty()) GTEST_SKIP() << "skipped: no launch parameters";
  // Wider, taller and smaller than a band of tiles may be.
  // The last one is deep, so that a library has algorithms that split k.
  constexpr int64_t kShapes[][3] = {
      {300, 2500, 40}, {2500, 300, 40}, {1100, 1300, 70}, {9, 9, 9}, {64, 64, 8192}};
  std::mt19937_64 random(16);
  for (size_t i = 0; i < kernel().params.size(); ++i) {
    for (const int64_t value : TestedValues(kernel().params[i])) {
      LaunchParams params = Defaults(kernel());
      params[i] = value;
      for (const auto& [m, n, k] : kShapes) {
        Check(RandomCase(NextTypes(), m, n, k, random), params);
      }
    }
  }
}

TEST_P(GpuKernel, EveryTransposeBiasAndActivation) {
  uint64_t seed = 1;
  for (const int transposes : {0, 1, 2, 3}) {
    for (const BiasAxis bias : {BiasAxis::kNone, BiasAxis::kColumns, BiasAxis::kRows}) {
      for (const Activation activation :
           {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kLeakyRelu}) {
        ProductCase product;
        product.problem = {.m = 131,
                           .n = 77,
                           .k = 40,
                           .types = NextTypes(),
                           .trans_a = transposes % 2 == 1,
                           .trans_b = transposes / 2 == 1,
                           .alpha = 1.25,
                           .beta = seed % 3 == 0 ? 0.0 : -0.75,
                           .bias = bias,
                           .activation = activation};
        product.c_is_d = seed % 3 == 1;
        product.extra_pitch_bytes = 32;
        product.seed = seed++;
        Check(product, Defaults(kernel()));
      }
    }
  }
}

TEST_P(GpuKernel, AnAlphaTooSmallForItsTypeIsZero) {
  std::mt19937_64 random(18);
  std::uniform_int_distribution<int64_t> dim(1, 300);
  for (const Types& types : kernel().types) {
    if (types.compute == Compute::kF64) GTEST_SKIP() << "skipped: f64 has room for it";
    for (int round = 0; round < 20; ++round) {
      ProductCase product = RandomCase(types, dim(random), dim(random), dim(random), random);
      product.problem.alpha = 1e-60;
      product.problem.beta = round % 2 == 0 ? 1.0 : -0.75;
      product.c_is_d = false;
      Check(product, Defaults(kernel()));
    }
  }
}

TEST_P(GpuKernel, SameBitsEveryTime) {
  constexpr int64_t kShapes[][3] = {{300, 200, 100}, {64, 64, 8192}, {1021, 1019, 1013}};
  std::mt19937_64 random(13);
  for (const auto& [m, n, k] : kShapes) {
    CheckBits(RandomCase(NextTypes(), m, n, k, random), RandomParams(kernel(), random), 20);
  }
  if (kernel().family != "hopper") return;
  for (const Types& types : kernel().types) {  // tiles in turns, through TMA
    ProductCase product;
    product.problem = {.m = 2056, .n = 4104, .k = 456, .types = types};
    CheckBits(product, Defaults(kernel()), 6);
  }
}

// 1 + 2^-10 is a TF32 number, and the nearest one to every element of A. If elements were cut, they
// would be 1.
TEST_P(GpuKernel, Tf32OperandsAreRounded) {
  if (kernel().types.front().compute != Compute::kTF32) GTEST_SKIP() << "skipped: no TF32";
  if (kernel().tile_m == 0) GTEST_SKIP() << "skipped: a library rounds as it likes";
  for (const bool trans : {false, true}) {
    ProductCase product;
    product.problem = {.m = 70, .n = 50, .k = 40, .types = kernel().types.front()};
    product.problem.trans_a = product.problem.trans_b = trans;
    ProductData data(product);
    for (int64_t i = 0; i < data.a.rows(); ++i) {
      for (int64_t j = 0; j < data.a.cols(); ++j) data.a.Set(i, j, 1 + 0.75 * 0x1p-10);
    }
    for (int64_t i = 0; i < data.b.rows(); ++i) {
      for (int64_t j = 0; j < data.b.cols(); ++j) data.b.Set(i, j, -1);
    }
    ASSERT_EQ(RunOnGpu(kernel(), data, Defaults(kernel()), 0), absl::OkStatus());
    for (int64_t i = 0; i < product.problem.m; ++i) {
      for (int64_t j = 0; j < product.problem.n; ++j) {
        ASSERT_EQ(data.d.At(i, j), -40 * (1 + 0x1p-10)) << i << ", " << j;
      }
    }
  }
}

TEST_P(GpuKernel, ProductsOfABatchAreThoseAlone) {
  if (!kernel().batches) GTEST_SKIP() << "skipped: it takes no batches";
  std::mt19937_64 random(19);
  const auto check = [&](const ProductCase& batch) {
    const LaunchParams params = RandomParams(kernel(), random);
    const Runner run = [&params](const Kernel& row, ProductData& data) {
      return RunOnGpu(row, data, params, 16);
    };
    EXPECT_EQ(CheckBatchOf(kernel(), batch, run, 8), "") << Describe(kernel(), params);
  };
  std::uniform_int_distribution<int64_t> dim(1, 200);
  for (const int64_t products : {2, 3, 17, 100}) {
    for (int round = 0; round < 6; ++round) {
      check(RandomBatch(NextTypes(), dim(random), dim(random), dim(random), products, random));
    }
  }
  // Few tiles and a long k: alone, k is split, for which a batch needs more workspace.
  check(RandomBatch(NextTypes(), 64, 64, 8192, 40, random));
  check(RandomBatch(NextTypes(), 16, 24, 4096, 200, random));
  check(RandomBatch(NextTypes(), 64, 64, 64, 1000, random));
  check(RandomBatch(NextTypes(), 3, 1, 2, 1000, random));
  check(RandomBatch(NextTypes(), 1, 2, 1, kMaxBatch, random));
  for (const double alpha : {0.0, 1.0}) {
    for (const BiasAxis bias : {BiasAxis::kColumns, BiasAxis::kRows}) {
      ProductCase epilogue = RandomBatch(NextTypes(), 33, 47, 20, 50, random);
      epilogue.problem.alpha = alpha;
      epilogue.problem.beta = 0.5;
      epilogue.problem.bias = bias;
      epilogue.problem.activation = Activation::kGelu;
      check(epilogue);
    }
  }
}

// Blocks of whole tiles and of parts of one, few and many, with a k that is split and one that is
// not.
TEST_P(GpuKernel, RowsOfABlockAreThoseOfTheWhole) {
  if (!kernel().row_blocks) GTEST_SKIP() << "skipped: it promises no row blocks";
  std::mt19937_64 random(23);
  const auto check = [&](int64_t m, int64_t n, int64_t k, int64_t block_rows) {
    const LaunchParams params = RandomParams(kernel(), random);
    const Runner run = [&params](const Kernel& row, ProductData& data) {
      return RunOnGpu(row, data, params, 16);
    };
    const ProductCase whole = RandomRowsCase(NextTypes(), m, n, k, random);
    EXPECT_EQ(CheckRowBlocksOf(kernel(), whole, run, block_rows), "") << Describe(kernel(), params);
  };
  std::uniform_int_distribution<int64_t> dim(1, 400);
  for (int round = 0; round < 8; ++round) {
    const int64_t m = dim(random);
    check(m, dim(random), dim(random),
          std::uniform_int_distribution<int64_t>(1, m)(random) / 3 + 1);
  }
  check(1024, 520, 264, 128);
  check(2048, 1032, 72, 256);
  check(513, 64, 8192, 128);
  check(300, 17, 4100, 37);
}

// Products with rows around a tile's and around a warpgroup's part of it, and without rows. Few
// tiles, and so many that blocks take them in turns. More products than a launch of the Hopper rows
// has.
TEST_P(GpuKernel, ProductsOfAGroupAreThoseAlone) {
  std::mt19937_64 random(23);
  const auto check = [&](const ProductCase& group, int64_t most_alone) {
    const LaunchParams params = RandomParams(kernel(), random);
    const Runner run = [&params](const Kernel& row, ProductData& data) {
      return RunOnGpu(row, data, params, 16);
    };
    EXPECT_EQ(CheckGroupOf(kernel(), group, run, most_alone), "") << Describe(kernel(), params);
  };
  const int64_t tile = std::clamp<int64_t>(kernel().tile_m, 16, 256);
  const std::vector<int64_t> around = {tile - 1,     0,  tile, tile + 1, 1,  0,   0,
                                       2 * tile + 3, 64, 65,   tile / 2, 63, tile};
  for (const Types& types : kernel().types) {
    for (const int64_t n : {72, 200, 333}) check(RandomGroupByM(types, around, n, 70, random), 32);
    check(RandomGroupByM(types, {3 * tile + 5}, 96, 130, random), 1);
    check(RandomGroupByM(types, {300, 300, 300}, 264, 64, random), 3);
    check(RandomGroupByM(types, RandomExtents(20, 150, random), 100, 33, random), 20);
    check(RandomGroupByK(types, 70, 90, RandomExtents(9, 200, random), random), 9);
  }
  check(RandomGroupByM(NextTypes(), RandomExtents(1200, 9, random), 40, 24, random), 24);
  check(RandomGroupByM(NextTypes(), RandomExtents(kMaxGroup, 2, random), 8, 8, random), 24);
}

// D is alpha times the product, as in most layers. A tile with rows of one product alone leaves by
// TMA; one with the next product's rows leaves by elements. Far more tiles than run at a time.
TEST_P(GpuKernel, TilesOfAGroupInTurns) {
  if (!kernel().groups) GTEST_SKIP() << "skipped: it takes a group apart";
  std::mt19937_64 random(24);
  for (const Types& types : kernel().types) {
    for (const bool trans_b : {false, true}) {
      for (const double alpha : {1.0, 0.5}) {
        ProductCase group =
            RandomGroupByM(types, RandomExtents(60, 400, random), 1544, 456, random);
        group.elements = Elements::kExact;
        group.c_is_d = false;
        group.problem.alpha = alpha;
        group.problem.beta = 0;
        group.problem.bias = BiasAxis::kNone;
        group.problem.activation = Activation::kNone;
        group.problem.trans_b = trans_b;
        const Runner run = [this](const Kernel& row, ProductData& data) {
          return RunOnGpu(row, data, Defaults(row), 16);
        };
        EXPECT_EQ(CheckGroupOf(kernel(), group, run, 20), "");
      }
    }
  }
}

TEST_P(GpuKernel, EveryEpilogueOfAGroup) {
  std::mt19937_64 random(25);
  const std::vector<int64_t> extents = {70, 0, 131, 5, 128};
  for (const BiasAxis bias : {BiasAxis::kNone, BiasAxis::kColumns, BiasAxis::kRows}) {
    for (const Activation activation :
         {Activation::kNone, Activation::kRelu, Activation::kGelu, Activation::kLeakyRelu}) {
      for (const double beta : {0.0, -0.75}) {
        for (const bool by_m : {true, false}) {
          const Types& types = NextTypes();
          ProductCase group = by_m ? RandomGroupByM(types, extents, 136, 40, random)
                                   : RandomGroupByK(types, 136, 40, extents, random);
          group.problem.beta = beta;
          group.problem.bias = bias;
          group.problem.activation = activation;
          group.c_is_d = beta != 0 && !group.shared.c && random() % 2 == 0;
          const Runner run = [this](const Kernel& row, ProductData& data) {
            return RunOnGpu(row, data, Defaults(row), 16);
          };
          EXPECT_EQ(CheckGroupOf(kernel(), group, run, 5), "");
        }
      }
    }
  }
}

std::string NameOf(const ::testing::TestParamInfo<const Kernel*>& info) {
  return std::string(info.param->name);
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuKernel, ::testing::ValuesIn(CudaKernels()), NameOf);

// Our own rows, without those of libraries.
std::vector<const Kernel*> OwnKernels() {
  std::vector<const Kernel*> kernels = CudaKernels();
  std::erase_if(kernels, [](const Kernel* kernel) { return kernel->tile_m == 0; });
  return kernels;
}

// Few and small shapes, for compute-sanitizer: less than a tile, one element off a tile with the
// pipeline refilled, odd sizes with all operands transposed, and a plain product of whole runs.
class GpuKernelSmall : public GpuKernel {};

TEST_P(GpuKernelSmall, IsRightInBuffersWithoutSlack) {
  const int64_t m = kernel().tile_m, n = kernel().tile_n, k = kernel().tile_k;
  const int64_t depth = std::max(kernel().stages, 1) * k;
  const int64_t shapes[][3] = {{5, 7, 3}, {m + 1, n + 1, depth + k + 1}, {m / 2 + 3, n + 9, k + 5}};
  std::mt19937_64 random(17);
  for (const auto& [rows, cols, this_k] : shapes) {
    const ProductCase product = RandomCase(NextTypes(), rows, cols, this_k, random);
    EXPECT_EQ(CheckProduct(kernel(), product, RunInExactBuffers, 500), "");
  }
  ProductCase plain;
  plain.problem = {.m = m + 8, .n = n + 8, .k = depth + k, .types = NextTypes()};
  EXPECT_EQ(CheckProduct(kernel(), plain, RunInExactBuffers, 500), "");
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuKernelSmall, ::testing::ValuesIn(OwnKernels()), NameOf);

}  // namespace
}  // namespace gemm::testing
