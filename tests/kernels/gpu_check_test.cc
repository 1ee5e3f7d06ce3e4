// The check of products on a GPU agrees with the host's.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "gemm/check.h"
#include "tests/kernels/check_trial.h"
#include "tests/kernels/gpu.h"

namespace gemm::testing {
namespace {

// The memory of a check's outcome: pinned, as the stream writes it.
CheckOutcome* PinnedOutcome() {
  static CheckOutcome* const outcome = [] {
    void* memory = nullptr;
    EXPECT_EQ(cudaMallocHost(&memory, sizeof(CheckOutcome)), cudaSuccess);
    return new (memory) CheckOutcome;
  }();
  return outcome;
}

CheckOutcome OutcomeOnGpu(const ProductData& data, uint64_t seed) {
  Gpu& gpu = *Gpu::Get();
  gpu.Reset();
  constexpr size_t kBand = GuardedMatrix::kBand;
  Operands operands = data.ForReference();
  operands.a = gpu.Upload(data.a.bytes(), 16) + kBand;
  operands.b = gpu.Upload(data.b.bytes(), 16) + kBand;
  operands.d = gpu.Upload(data.d.bytes(), 16) + kBand;
  if (data.reads_c()) operands.c = gpu.Upload(data.c.bytes(), 16) + kBand;
  if (data.reads_bias()) operands.bias = gpu.Upload(data.bias.bytes(), 16) + kBand;
  const Problem& problem = data.product.problem;
  const size_t bytes = CheckScratchBytes(problem);
  std::byte* const scratch = gpu.Allocate(bytes, 0);
  // NaN: the check must not read memory that it did not write.
  EXPECT_EQ(cudaMemsetAsync(scratch, 0xFF, bytes, gpu.stream()), cudaSuccess);
  CheckOutcome* const outcome = PinnedOutcome();
  *outcome = {.of_likely = std::nan(""), .uncovered_rows = -1};
  const absl::Status status =
      CheckCuda({.problem = problem, .operands = operands, .seed = seed, .scratch = scratch},
                outcome, gpu.stream());
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(gpu.Synchronize().ok());
  return *outcome;
}

// The two add up in different orders.
bool Near(double x, double y) { return x == y || std::abs(x - y) <= 1e-3 * (1 + std::abs(y)); }

// The rows are the host's. Their bounds are the same, except for roundings in f64.
Checked CheckOnBoth(const ProductData& data, uint64_t seed) {
  Checked checked = CheckOn(data, seed);
  const CheckOutcome gpu = OutcomeOnGpu(data, seed);
  const CheckOutcome& host = checked.outcome;
  EXPECT_TRUE(Near(gpu.of_likely, host.of_likely)) << gpu.of_likely << " " << host.of_likely;
  EXPECT_TRUE(Near(gpu.of_possible, host.of_possible)) << gpu.of_possible;
  EXPECT_EQ(gpu.uncovered_rows, host.uncovered_rows);
  if (host.of_likely > 1.01) {
    EXPECT_EQ(gpu.worst_row, host.worst_row);
  }
  checked.outcome = gpu;
  return checked;
}

const Machine kBoth{.compute = ComputeTrial, .check = CheckOnBoth};

class GpuCheckTest : public GpuTest {};

TEST_F(GpuCheckTest, RightProductsPass) {
  const CleanTrial trial = TryClean(5'000, 3, kBoth);
  EXPECT_EQ(trial.beyond_likely, 0) << trial.first_beyond;
  EXPECT_EQ(trial.beyond_possible, 0);
  EXPECT_GT(trial.largest_of_likely, 0.5);
}

TEST_F(GpuCheckTest, EveryFlipAboveTheRowsToleranceIsCaught) {
  const FlipTrial trial = TryFlips(10'000, 4, kBoth);
  EXPECT_EQ(trial.missed, 0) << trial.first_missed;
  EXPECT_EQ(trial.flips, 10'000);
}

// Lines of several parts, more rows than the blocks that judge them have threads, and long rows.
TEST_F(GpuCheckTest, LargeShapes) {
  const Types f32{DType::kF32, DType::kF32, DType::kF32, Compute::kF32};
  const Types f16{DType::kF16, DType::kF16, DType::kF16, Compute::kF32};
  const Types f64{DType::kF64, DType::kF64, DType::kF64, Compute::kF64};
  for (const Types& types : {f32, f16, f64}) {
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{70'001, 3, 5}, {3, 9001, 40}, {257, 131, 3001}}) {
      for (const bool transposed : {false, true}) {
        TrialCase trial;
        trial.product.problem = {
            .m = m, .n = n, .k = k, .types = types, .trans_a = transposed, .trans_b = transposed};
        trial.product.extra_pitch_bytes = 16;
        trial.product.seed = 9;
        const std::unique_ptr<ProductData> data = ComputeTrial(trial);
        EXPECT_TRUE(CheckOnBoth(*data, 5).outcome.likely()) << ToString(trial);
        data->d.Set(m - 1, n - 1, data->d.At(m - 1, n - 1) + 100);
        const CheckOutcome wrong = CheckOnBoth(*data, 5).outcome;
        EXPECT_FALSE(wrong.likely()) << ToString(trial);
        EXPECT_EQ(wrong.worst_row, m - 1);
      }
    }
  }
}

class GpuFinishTest : public GpuTest {};

// The epilogue over accumulators is the host's, except for roundings of its functions.
TEST_F(GpuFinishTest, IsThatOfTheHost) {
  std::mt19937_64 random(11);
  const Types all[] = {
      {DType::kF64, DType::kF64, DType::kF64, Compute::kF64},
      {DType::kF32, DType::kF32, DType::kF32, Compute::kTF32},
      {DType::kF32, DType::kF32, DType::kF32, Compute::kF32x3},
      {DType::kS8, DType::kS8, DType::kS32, Compute::kS32},
      {DType::kS8, DType::kS8, DType::kBF16, Compute::kS32},  // f16 has no such range
      {DType::kF16, DType::kF16, DType::kF16, Compute::kF16},
      {DType::kF16, DType::kF16, DType::kF16, Compute::kF32},
      {DType::kBF16, DType::kBF16, DType::kBF16, Compute::kF32},
      {DType::kE4M3, DType::kE4M3, DType::kF32, Compute::kF32}};
  for (const Types& types : all) {
    for (const Activation activation :
         {Activation::kRelu, Activation::kGelu, Activation::kLeakyRelu}) {
      for (const BiasAxis bias : {BiasAxis::kNone, BiasAxis::kColumns, BiasAxis::kRows}) {
        ProductCase product = RandomCase(types, 37, 51, 8, random);
        product.c_is_d = false;
        product.problem.bias = bias;
        product.problem.activation = activation;
        product.problem.leaky_slope = 0.25;
        ProductData data(product);
        const Problem sums_of = AccumulatorProblem(product.problem);
        GuardedMatrix sums(37, 51, sums_of.types.d, 0);
        sums.FillUniform(12, -2, 2);
        ASSERT_TRUE(FinishHost(product.problem, data.ForReference(), sums.data()).ok());

        Gpu& gpu = *Gpu::Get();
        gpu.Reset();
        constexpr size_t kBand = GuardedMatrix::kBand;
        GuardedMatrix d(37, 51, types.d, product.extra_pitch_bytes);
        std::byte* const on_gpu = gpu.Upload(d.bytes(), 16);
        Operands operands = data.ForReference();
        operands.d = on_gpu + kBand;
        if (data.reads_c()) operands.c = gpu.Upload(data.c.bytes(), 16) + kBand;
        if (data.reads_bias()) operands.bias = gpu.Upload(data.bias.bytes(), 16) + kBand;
        ASSERT_TRUE(
            FinishCuda(product.problem, operands, gpu.Upload(sums.bytes(), 0) + kBand, gpu.stream())
                .ok());
        gpu.Download(on_gpu, d.bytes());
        ASSERT_TRUE(gpu.Synchronize().ok());
        EXPECT_TRUE(d.GuardIntact());
        const double unit = UnitRoundoff(types.d) + 8 * UnitRoundoff(sums_of.types.d);
        for (int64_t i = 0; i < 37; ++i) {
          for (int64_t j = 0; j < 51; ++j) {
            const double host = data.d.At(i, j);
            ASSERT_NEAR(d.At(i, j), host, 2 * unit * (4 + std::abs(host))) << product;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace gemm::testing
