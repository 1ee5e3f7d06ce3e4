// The check of products: right ones pass, wrong ones fail, and rows that it cannot judge are
// reported.
#include "gemm/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "gemm/catalogue.h"
#include "kernels/check/check_plan.h"
#include "tests/kernels/check_trial.h"

namespace gemm::testing {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr Types kF32Types{DType::kF32, DType::kF32, DType::kF32, Compute::kF32};
constexpr Types kF64Types{DType::kF64, DType::kF64, DType::kF64, Compute::kF64};
constexpr Types kF16Types{DType::kF16, DType::kF16, DType::kF16, Compute::kF32};

TrialCase Plain(const Types& types, int64_t m, int64_t n, int64_t k) {
  TrialCase trial;
  trial.product.problem = {.m = m, .n = n, .k = k, .types = types};
  trial.product.seed = 7;
  trial.maker = Maker::kReference;
  return trial;
}

// alpha, beta C, a bias for each column, and transposed operands.
TrialCase Full(BiasAxis bias) {
  TrialCase trial = Plain(kF32Types, 20, 24, 28);
  Problem& problem = trial.product.problem;
  problem.alpha = 1.5;
  problem.beta = -0.75;
  problem.bias = bias;
  problem.trans_a = true;
  problem.trans_b = true;
  return trial;
}

void Add(GuardedMatrix& d, int64_t i, int64_t j, double change) {
  d.Set(i, j, d.At(i, j) + change);
}

CheckOutcome Outcome(const ProductData& data, uint64_t seed = 3) {
  return CheckOn(data, seed).outcome;
}

// The defect `spoil` in an otherwise right product is found. Several wrong elements of a row may
// cancel: 20 elements with the same error do so with a probability of 0.18.
template <class Spoil>
void ExpectWrong(const TrialCase& trial, const Spoil& spoil) {
  constexpr uint64_t kSeeds = 20;
  const std::unique_ptr<ProductData> data = ComputeTrial(trial);
  uint64_t passed = 0, wrong = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) passed += Outcome(*data, seed).likely() ? 1 : 0;
  spoil(*data);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) wrong += Outcome(*data, seed).possible() ? 0 : 1;
  EXPECT_EQ(passed, kSeeds) << ToString(trial);
  EXPECT_GT(wrong, kSeeds / 2) << ToString(trial);
}

TEST(CheckTest, EveryCombinationOfTypesOfAnyKernelIsTried) {
  for (const Kernel* kernel : Catalogue()) {
    for (const Types& types : kernel->types) {
      EXPECT_NE(std::find(TrialTypes().begin(), TrialTypes().end(), types), TrialTypes().end())
          << kernel->name << ": " << ToString(Plain(types, 1, 1, 1));
    }
  }
}

// The tests above draw shapes, too. Here each combination of types has its share.
TEST(CheckTest, FlipsOfEveryCombinationOfTypesAreCaught) {
  for (const Types& types : TrialTypes()) {
    std::mt19937_64 random(5);
    int64_t above = 0;
    for (const int64_t k : {8, 100}) {
      const TrialCase trial = Plain(types, 12, 16, k);
      const std::unique_ptr<ProductData> data = ComputeTrial(trial);
      for (uint64_t seed = 0; seed < 200; ++seed) {
        const Checked clean = CheckOn(*data, seed);
        EXPECT_TRUE(clean.outcome.likely()) << ToString(trial);
        const Flip flip = FlipOne({}, *data, clean, seed, random);
        above += flip.above() ? 1 : 0;
        EXPECT_TRUE(flip.caught || !flip.above()) << ToString(trial) << ", bit " << flip.bit;
      }
    }
    // Among 400 flips, at least those of the sign and of an upper bit of the exponent are above the
    // tolerance. Accumulators in f16, and fp8, have wide tolerances.
    EXPECT_GT(above, 20) << ToString(Plain(types, 12, 16, 8));
  }
}

TEST(CheckTest, RightProductsPass) {
  const CleanTrial trial = TryClean(20'000, 2);
  EXPECT_EQ(trial.beyond_likely, 0) << trial.first_beyond;
  EXPECT_EQ(trial.beyond_possible, 0);
  EXPECT_EQ(trial.with_uncovered_rows, 0);
  // Products must not pass merely because the bounds are wide.
  EXPECT_GT(trial.largest_of_likely, 0.5);
}

TEST(CheckTest, EveryFlipAboveTheRowsToleranceIsCaught) {
  const FlipTrial trial = TryFlips(10'000, 1);
  EXPECT_EQ(trial.flips, 10'000);
  EXPECT_EQ(trial.missed, 0) << trial.first_missed;
  // The tolerances leave little room, those of fp8 operands excepted: nearly every flipped sign or
  // exponent is above them.
  int64_t flips = 0, caught = 0;
  for (const auto& [bits, count] :
       {std::pair(trial.table.at(DType::kF32), 9), std::pair(trial.table.at(DType::kF64), 12)}) {
    for (size_t bit = bits.size() - count; bit < bits.size(); ++bit) {
      flips += bits[bit].flips;
      caught += bits[bit].caught;
    }
  }
  EXPECT_GT(flips, 500);
  EXPECT_GT(static_cast<double>(caught), 0.85 * static_cast<double>(flips));
}

TEST(CheckTest, EveryTermOfTheProductCounts) {
  const auto spoil_all = [](const auto& error_at) {
    return [error_at](ProductData& data) {
      for (int64_t i = 0; i < data.d.rows(); ++i) {
        for (int64_t j = 0; j < data.d.cols(); ++j) Add(data.d, i, j, error_at(data, i, j));
      }
    };
  };
  for (const BiasAxis bias : {BiasAxis::kColumns, BiasAxis::kRows}) {
    ExpectWrong(Full(bias), spoil_all([bias](const ProductData& data, int64_t i, int64_t j) {
                  return -data.bias.At(0, bias == BiasAxis::kRows ? i : j);
                }));
    ExpectWrong(Full(bias), spoil_all([](const ProductData& data, int64_t i, int64_t j) {
                  return 0.75 * data.c.At(i, j);
                }));
    // The last product of each sum; operands are transposed.
    ExpectWrong(Full(bias), spoil_all([](const ProductData& data, int64_t i, int64_t j) {
                  return -1.5 * data.a.At(27, i) * data.b.At(j, 27);
                }));
  }
}

TEST(CheckTest, RowsOfAnotherOrderAreCaught) {
  ExpectWrong(Plain(kF32Types, 16, 16, 16), [](ProductData& data) {
    for (int64_t j = 0; j < 16; ++j) {
      const double first = data.d.At(0, j);
      data.d.Set(0, j, data.d.At(1, j));
      data.d.Set(1, j, first);
    }
  });
}

TEST(CheckTest, AChangeAboveTheToleranceIsCaughtWhateverTheSigns) {
  const std::unique_ptr<ProductData> data = ComputeTrial(Plain(kF32Types, 8, 40, 100));
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Checked clean = CheckOn(*data, seed);
    const double before = data->d.At(5, 30);
    // Far above the rounding of the element.
    Add(data->d, 5, 30, 2.1 * clean.rows[5].likely);
    const CheckOutcome outcome = Outcome(*data, seed);
    data->d.Set(5, 30, before);
    EXPECT_FALSE(outcome.likely()) << seed;
    EXPECT_EQ(outcome.worst_row, 5) << seed;
  }
}

TEST(CheckTest, AWrongNaNOrInfinityIsCaught) {
  for (const double wrong : {kNaN, -std::numeric_limits<double>::infinity()}) {
    ExpectWrong(Plain(kF16Types, 4, 4, 4), [=](ProductData& data) { data.d.Set(2, 1, wrong); });
  }
}

TEST(CheckTest, SpecialValuesOfAOrCLeaveTheirRowsOut) {
  TrialCase trial = Full(BiasAxis::kColumns);
  const std::unique_ptr<ProductData> data = ComputeTrial(trial);
  data->a.Set(3, 6, kNaN);  // transposed: element 3 of row 6
  data->c.Set(9, 1, std::numeric_limits<double>::infinity());
  CheckOutcome outcome = Outcome(*data);
  EXPECT_TRUE(outcome.likely());
  EXPECT_EQ(outcome.uncovered_rows, 2);
  // The other rows are checked.
  Add(data->d, 7, 7, 1);
  outcome = Outcome(*data);
  EXPECT_FALSE(outcome.possible());
  EXPECT_EQ(outcome.worst_row, 7);
}

TEST(CheckTest, ASpecialValueOfBLeavesAllRowsOut) {
  const std::unique_ptr<ProductData> data = ComputeTrial(Plain(kF32Types, 12, 8, 8));
  data->b.Set(2, 2, kNaN);
  data->d.Set(0, 0, kNaN);
  const CheckOutcome outcome = Outcome(*data);
  EXPECT_TRUE(outcome.likely());
  EXPECT_EQ(outcome.uncovered_rows, 12);
}

TEST(CheckTest, AnOverflowIsUnlikelyAndPossible) {
  TrialCase trial = Plain(kF16Types, 3, 4, 5);
  const std::unique_ptr<ProductData> data = ComputeTrial(trial);
  for (int64_t l = 0; l < 5; ++l) {
    data->a.Set(1, l, 1000);
    for (int64_t j = 0; j < 4; ++j) data->b.Set(l, j, 100);
  }
  RunOnHost(**FindKernel("host_reference"), *data).IgnoreError();
  ASSERT_TRUE(std::isinf(data->d.At(1, 0)));
  const CheckOutcome outcome = Outcome(*data);
  EXPECT_FALSE(outcome.likely());
  EXPECT_TRUE(outcome.possible());
  EXPECT_EQ(outcome.uncovered_rows, 1);
  EXPECT_EQ(outcome.worst_row, 1);
}

// All elements are finite; the sums of the check are not.
TEST(CheckTest, SumsOfARowMayOverflowWhereItsElementsDoNot) {
  const std::unique_ptr<ProductData> data = ComputeTrial(Plain(kF64Types, 2, 64, 1));
  for (int64_t i = 0; i < 2; ++i) data->a.Set(i, 0, i == 0 ? 1e307 : 1);
  for (int64_t j = 0; j < 64; ++j) data->b.Set(0, j, 1);
  RunOnHost(**FindKernel("host_reference"), *data).IgnoreError();
  ASSERT_EQ(data->d.At(0, 0), 1e307);
  CheckOutcome outcome = Outcome(*data);
  EXPECT_TRUE(outcome.possible());
  EXPECT_EQ(outcome.uncovered_rows, 1);
  data->d.Set(1, 5, kNaN);
  EXPECT_FALSE(Outcome(*data).possible());
}

TEST(CheckTest, VerySmallAndVeryLargeElements) {
  struct Case {
    Types types;
    double a, b;
  };
  for (const Case& c : {Case{kF64Types, 1e-170, 1e-100}, Case{kF64Types, 1e160, 1e-20},
                        Case{kF64Types, 1e150, 1e150}, Case{kF32Types, 1e-40, 1e-3},
                        Case{kF32Types, 1e-25, 1e-20}, Case{kF32Types, 1e18, 1e18}}) {
    const std::unique_ptr<ProductData> data = ComputeTrial(Plain(c.types, 9, 11, 13));
    for (int64_t l = 0; l < 13; ++l) {
      for (int64_t i = 0; i < 9; ++i) data->a.Set(i, l, c.a * data->a.At(i, l));
      for (int64_t j = 0; j < 11; ++j) data->b.Set(l, j, c.b * data->b.At(l, j));
    }
    for (const char* kernel : {"host_openblas", "host_reference"}) {
      RunOnHost(**FindKernel(kernel), *data).IgnoreError();
      const CheckOutcome outcome = Outcome(*data);
      EXPECT_TRUE(outcome.likely()) << c.a << " " << c.b << " " << outcome.of_likely;
    }
  }
}

TEST(CheckTest, SignsAreBothAndDependOnTheSeed) {
  double sum = 0;
  std::set<std::vector<double>> vectors;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<double> signs;
    for (int64_t j = 0; j < 130; ++j) signs.push_back(SignOf(seed, j));
    for (const double sign : signs) {
      EXPECT_TRUE(sign == 1 || sign == -1);
      sum += sign;
    }
    vectors.insert(signs);
  }
  EXPECT_EQ(vectors.size(), 50u);
  EXPECT_LT(std::abs(sum), 6 * std::sqrt(50.0 * 130));
}

TEST(CheckTest, TheEpilogueOverAccumulatorsIsThatOfTheKernel) {
  std::mt19937_64 random(11);
  for (const Types& types : {kF32Types, kF64Types, kF16Types,
                             Types{DType::kBF16, DType::kBF16, DType::kBF16, Compute::kF32},
                             Types{DType::kF16, DType::kF16, DType::kF16, Compute::kF16},
                             Types{DType::kS8, DType::kS8, DType::kF16, Compute::kS32},
                             Types{DType::kS8, DType::kS8, DType::kS32, Compute::kS32}}) {
    for (const Activation activation :
         {Activation::kRelu, Activation::kGelu, Activation::kLeakyRelu}) {
      ProductCase product = RandomCase(types, 19, 300, 23, random);
      product.problem.activation = activation;
      product.c_is_d = false;
      product = Fitted(product);
      ProductData data(product);
      ProductCase accumulators = product;
      accumulators.problem = AccumulatorProblem(product.problem);
      ProductData product_alone(accumulators);
      product_alone.a = data.a;
      product_alone.b = data.b;
      ASSERT_TRUE(RunOnHost(**FindKernel("host_openblas"), product_alone).ok());
      EXPECT_TRUE(Outcome(product_alone).likely());
      // As the engine lays them out.
      std::vector<std::byte> memory(AccumulatorMatrixBytes(product.problem));
      const Operands dense =
          AccumulatorOperands(product.problem, data.ForReference(), memory.data());
      for (int64_t i = 0; i < 19; ++i) {
        for (int64_t j = 0; j < 300; ++j) {
          StoreElement(dense.d, i * dense.ldd + j, accumulators.problem.types.d,
                       product_alone.d.At(i, j));
        }
      }
      ASSERT_TRUE(FinishHost(product.problem, data.ForReference(), memory.data()).ok());
      const Agreement agreement = CompareWithReference(product.problem, data.ForReference(),
                                                       Elements::kDrawn, 1'000'000, 1);
      EXPECT_LE(agreement.worst_ratio, 1) << product;
      EXPECT_TRUE(data.d.GuardIntact());
    }
  }
}

}  // namespace
}  // namespace gemm::testing
