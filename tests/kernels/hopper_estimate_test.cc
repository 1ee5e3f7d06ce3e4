// The estimates of the Hopper kernels against measurements of every row (docs/results/h200-rows,
// h100-rows). How fast is the row that they rank first?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/hopper/configs.h"
#include "kernels/hopper/estimate.h"
#include "kernels/hopper/row.h"

namespace gemm {
namespace {

struct Suite {
  const char* file;
  DType operand, accumulator, d;
  bool trans_b;
  // The least mean speed and the least speed of the first row by estimate, as shares of the fastest
  // measured one, cuBLASLt's algorithms included.
  double least_mean, least;
};

constexpr Suite kSuites[] = {
    {"h200-rows/f16-nn-hgemm-125", DType::kF16, DType::kF32, DType::kF16, false, 0.971, 0.87},
    {"h200-rows/bf16-nn-hgemm-125", DType::kBF16, DType::kF32, DType::kBF16, false, 0.967, 0.83},
    {"h200-rows/f16acc16-nn-hgemm-125", DType::kF16, DType::kF16, DType::kF16, false, 0.988, 0.89},
    {"h200-rows/tf32-nt-hgemm-125", DType::kF32, DType::kF32, DType::kF32, true, 0.977, 0.89},
    {"h200-rows/tf32-nn-hgemm-27", DType::kF32, DType::kF32, DType::kF32, false, 0.95, 0.87},
    {"h200-rows/e4m3-nt-hgemm-125", DType::kE4M3, DType::kF32, DType::kF16, true, 0.974, 0.78},
    {"h100-rows/e4m3-nt-hgemm-125", DType::kE4M3, DType::kF32, DType::kF16, true, 0.97, 0.79},
    {"h200-rows/f16-nn-skinny-72", DType::kF16, DType::kF32, DType::kF16, false, 0.96, 0.79},
    {"h200-rows/f16-nt-skinny-72", DType::kF16, DType::kF32, DType::kF16, true, 0.957, 0.81},
    {"h200-rows/f16-nn-small-125", DType::kF16, DType::kF32, DType::kF16, false, 0.984, 0.87},
};

Types TypesOf(const Suite& suite) {
  const Compute compute = suite.accumulator == DType::kF16 ? Compute::kF16
                          : suite.operand == DType::kF32   ? Compute::kTF32
                                                           : Compute::kF32;
  return {suite.operand, suite.operand, suite.d, compute};
}

std::map<std::string, HopperConfig> ConfigsByName() {
  std::map<std::string, HopperConfig> configs;
  const auto add = [&](absl::string_view type, const auto& table) {
    for (const HopperConfig& config : table) {
      configs[std::string(HopperName(type, config).view())] = config;
    }
  };
  add("f16", Hopper16BitConfigs(DType::kF16));
  add("bf16", Hopper16BitConfigs(DType::kBF16));
  add("f16acc16", HopperF16Acc16Configs());
  add("tf32", HopperTf32Configs());
  add("f32x3", HopperF32x3Configs());
  add("s8", HopperS8Configs());
  add("e4m3", Hopper8BitConfigs(DType::kE4M3));
  return configs;
}

// A line of a file: a shape, and the time of each kernel.
struct Measured {
  Problem problem;
  double library = 0;          // microseconds of cuBLAS's own choice
  double tuned = 0;            // of the fastest of all
  std::vector<double> micros;  // of each row
};

struct Measurements {
  std::vector<HopperConfig> configs;  // of each row
  std::vector<Measured> lines;
};

Measurements Read(const Suite& suite) {
  Measurements all;
  std::ifstream file(absl::StrCat(GEMM_MEASURED_ROWS, "/", suite.file, ".csv"));
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> heads = absl::StrSplit(line, ',');
  const auto configs = ConfigsByName();
  constexpr size_t kFirstRow = 5;  // behind m, n, k, cublas and cublaslt_best
  for (size_t i = kFirstRow; i < heads.size(); ++i) {
    const auto found = configs.find(heads[i]);
    EXPECT_NE(found, configs.end()) << heads[i] << " is in " << suite.file << " but no row";
    if (found != configs.end()) all.configs.push_back(found->second);
  }
  while (std::getline(file, line)) {
    const std::vector<std::string> words = absl::StrSplit(line, ',');
    Measured one;
    one.problem.types = TypesOf(suite);
    one.problem.trans_b = suite.trans_b;
    EXPECT_TRUE(absl::SimpleAtoi(words[0], &one.problem.m) &&
                absl::SimpleAtoi(words[1], &one.problem.n) &&
                absl::SimpleAtoi(words[2], &one.problem.k) &&
                absl::SimpleAtod(words[3], &one.library) && absl::SimpleAtod(words[4], &one.tuned))
        << line;
    for (size_t i = kFirstRow; i < words.size(); ++i) {
      double micros = 0;
      EXPECT_TRUE(absl::SimpleAtod(words[i], &micros) && micros > 0) << line;
      one.micros.push_back(micros);
      one.tuned = std::min(one.tuned, micros);
    }
    all.lines.push_back(one);
  }
  return all;
}

size_t FirstByEstimate(const std::vector<HopperConfig>& configs, const Problem& problem) {
  std::vector<double> seconds;
  for (const HopperConfig& config : configs) seconds.push_back(EstimateHopper(config, problem));
  return static_cast<size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
}

// A mean of ratios.
class Mean {
 public:
  void Add(double ratio) {
    logs_ += std::log(ratio);
    least_ = std::min(least_, ratio);
    ++count_;
  }
  double value() const { return std::exp(logs_ / count_); }
  double least() const { return least_; }

 private:
  double logs_ = 0, least_ = 1e9;
  int count_ = 0;
};

class HopperEstimate : public ::testing::TestWithParam<Suite> {};

// Prints the figures of docs/results/auto.md.
TEST_P(HopperEstimate, TheFirstIsNearlyTheFastest) {
  const Suite& suite = GetParam();
  const Measurements all = Read(suite);
  ASSERT_GE(all.lines.size(), 27u) << suite.file;
  Mean of_tuned, of_own, of_library, library_of_tuned, estimate;
  for (const Measured& line : all.lines) {
    ASSERT_EQ(line.micros.size(), all.configs.size());
    const size_t first = FirstByEstimate(all.configs, line.problem);
    const double taken = line.micros[first];
    of_tuned.Add(line.tuned / taken);
    of_own.Add(*std::min_element(line.micros.begin(), line.micros.end()) / taken);
    of_library.Add(line.library / taken);
    library_of_tuned.Add(line.tuned / line.library);
    estimate.Add(EstimateHopper(all.configs[first], line.problem) * 1e6 / taken);
  }
  std::printf("| %s | %.3f | %.3f | %.3f | %.3f | %.3f | %.2f |\n", suite.file, of_tuned.value(),
              of_tuned.least(), of_own.value(), of_library.value(), library_of_tuned.value(),
              estimate.value());
  EXPECT_GE(of_tuned.value(), suite.least_mean);
  EXPECT_GE(of_tuned.least(), suite.least);
  EXPECT_NEAR(estimate.value(), 1, 0.15) << "the estimates are off together";
}

INSTANTIATE_TEST_SUITE_P(Suites, HopperEstimate, ::testing::ValuesIn(kSuites),
                         [](const auto& info) {
                           std::string name = info.param.file;
                           std::replace(name.begin(), name.end(), '-', '_');
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

// A third warpgroup gains nothing with block scales (docs/results/fp8.md).
TEST(HopperEstimates, OfBlockScalesDoNotCountOnAThirdWarpgroup) {
  Problem p{.m = 16384, .n = 4096, .k = 4096};
  p.types = {DType::kE4M3, DType::kE4M3, DType::kBF16, Compute::kF32};
  p.trans_b = true;
  constexpr auto kConfigs = Hopper8BitConfigs(DType::kE4M3);
  const std::vector<HopperConfig> configs(kConfigs.begin(), kConfigs.end());
  EXPECT_EQ(configs[FirstByEstimate(configs, p)].consumers, 3);
  p.scales_a = ScaleBlocks::kLines;
  p.scales_b = ScaleBlocks::kTiles;
  EXPECT_EQ(configs[FirstByEstimate(configs, p)].consumers, 2);
}

constexpr HopperConfig kConfig{.tile_m = 128, .tile_n = 128, .stages = 6};

Problem Sized(int64_t m, int64_t n, int64_t k) {
  return {.m = m, .n = n, .k = k, .types = {DType::kF16, DType::kF16, DType::kF16, Compute::kF32}};
}

TEST(HopperEstimateOf, MoreWorkTakesLonger) {
  const double base = EstimateHopper(kConfig, Sized(4096, 4096, 4096));
  EXPECT_GT(EstimateHopper(kConfig, Sized(8192, 4096, 4096)), 1.8 * base);
  EXPECT_GT(EstimateHopper(kConfig, Sized(4096, 8192, 4096)), 1.8 * base);
  EXPECT_GT(EstimateHopper(kConfig, Sized(4096, 4096, 8192)), 1.8 * base);
  Problem batch = Sized(4096, 4096, 4096);
  batch.batch = 3;
  EXPECT_GT(EstimateHopper(kConfig, batch), 2.7 * base);
  Problem with_c = Sized(4096, 4096, 64);
  with_c.beta = 1;
  EXPECT_GT(EstimateHopper(kConfig, with_c), 1.2 * EstimateHopper(kConfig, Sized(4096, 4096, 64)));
}

// 132 tiles, one for each multiprocessor, and 144.
TEST(HopperEstimateOf, AWaveThatIsBegunIsPaid) {
  constexpr int64_t kRows = 12 * 128, kColumns = 11 * 128;
  const double one = EstimateHopper(kConfig, Sized(kRows, kColumns, 4096));
  EXPECT_NEAR(EstimateHopper(kConfig, Sized(kRows, kColumns - 127, 4096)), one, 0.02 * one);
  EXPECT_GT(EstimateHopper(kConfig, Sized(kRows, kColumns + 1, 4096)), 1.8 * one);
}

TEST(HopperEstimateOf, WhatTheKernelRefusesIsNeverTheFastest) {
  constexpr int64_t kMost = (int64_t{1} << 30) - 1;
  EXPECT_TRUE(std::isfinite(EstimateHopper(kConfig, Sized(1, 1, kMost))));
  EXPECT_TRUE(std::isinf(EstimateHopper(kConfig, Sized(1, 1, kMost + 1))));
  EXPECT_TRUE(std::isinf(EstimateHopper(kConfig, Sized(kMost + 1, 1, 1))));
  Problem tiles = Sized(128 * 20000, 128, 64);
  tiles.batch = kMaxBatch;
  EXPECT_TRUE(std::isinf(EstimateHopper(kConfig, tiles)));
}

TEST(HopperEstimateOf, MoreStagesAreBetterWhereABlockIsAlone) {
  HopperConfig deeper = kConfig;
  ++deeper.stages;
  EXPECT_LT(EstimateHopper(deeper, Sized(128, 128 * 100, 4096)),
            EstimateHopper(kConfig, Sized(128, 128 * 100, 4096)));
  EXPECT_GT(EstimateHopper(deeper, Sized(128, 128 * 200, 4096)),
            EstimateHopper(kConfig, Sized(128, 128 * 200, 4096)));
}

TEST(HopperEstimateOf, ATransposeIsPaid) {
  HopperConfig tf32 = kConfig;
  tf32.operand = DType::kF32;
  Problem p = Sized(4096, 4096, 512);
  p.types = {DType::kF32, DType::kF32, DType::kF32, Compute::kTF32};
  p.trans_b = true;
  const double neither = EstimateHopper(tf32, p);
  p.trans_b = false;
  const double one = EstimateHopper(tf32, p);
  p.trans_a = true;
  const double both = EstimateHopper(tf32, p);
  EXPECT_GT(one, neither + 4e-6);
  EXPECT_GT(both, one + 4e-6);
  EXPECT_EQ(EstimateHopper(kConfig, Sized(512, 512, 512)), [&] {
    Problem other = Sized(512, 512, 512);
    other.trans_a = other.trans_b = true;
    return EstimateHopper(kConfig, other);
  }()) << "16-bit operands are read as they are";
}

Problem GroupByM(const std::vector<int64_t>& extents, int64_t n, int64_t k) {
  Problem group = Sized(std::accumulate(extents.begin(), extents.end(), int64_t{0}), n, k);
  group.grouped = GroupedBy::kM;
  group.extents = extents;
  return group;
}

HopperConfig TakesGroups() {
  HopperConfig config = kConfig;
  config.groups = true;
  return config;
}

TEST(HopperEstimateOf, AGroupOfEqualProductsIsABatch) {
  const std::vector<int64_t> extents(40, 300);
  Problem batch = Sized(300, 640, 2048);
  batch.batch = 40;
  EXPECT_DOUBLE_EQ(EstimateHopper(TakesGroups(), GroupByM(extents, 640, 2048)),
                   EstimateHopper(kConfig, batch));
}

// Two products of 6 x 11 tiles, one for each multiprocessor. A begun tile costs a whole one, and
// products without rows have no tiles.
TEST(HopperEstimateOf, AGroupCostsItsTiles) {
  const auto seconds = [](const std::vector<int64_t>& extents) {
    return EstimateHopper(TakesGroups(), GroupByM(extents, 11 * 128, 8192));
  };
  const double one_wave = seconds({6 * 128, 6 * 128});
  EXPECT_NEAR(seconds({5 * 128 + 1, 6 * 128}), one_wave, 0.02 * one_wave);
  EXPECT_GT(seconds({6 * 128 + 1, 6 * 128}), 1.8 * one_wave);
  EXPECT_DOUBLE_EQ(seconds({0, 6 * 128, 0, 0, 6 * 128}), one_wave);
}

TEST(HopperEstimateOf, AGroupThatIsTakenApartIsPaidByTheProduct) {
  const std::vector<int64_t> extents = {100, 0, 700, 3};
  const double apart = EstimateHopper(kConfig, Sized(100, 256, 512)) +
                       EstimateHopper(kConfig, Sized(700, 256, 512)) +
                       EstimateHopper(kConfig, Sized(3, 256, 512));
  EXPECT_DOUBLE_EQ(EstimateHopper(kConfig, GroupByM(extents, 256, 512)), apart);
  EXPECT_LT(EstimateHopper(TakesGroups(), GroupByM(extents, 256, 512)), apart);
}

TEST(HopperEstimateOf, AGroupByKIsTakenApart) {
  const std::vector<int64_t> extents = {100, 0, 700};
  Problem group = Sized(256, 512, 800);
  group.trans_a = true;
  group.grouped = GroupedBy::kK;
  group.extents = extents;
  const double products = EstimateHopper(TakesGroups(), Sized(256, 512, 100)) +
                          EstimateHopper(TakesGroups(), Sized(256, 512, 700));
  EXPECT_GT(EstimateHopper(TakesGroups(), group), products);  // D without a product, too
  EXPECT_LT(EstimateHopper(TakesGroups(), group), products + 5e-6);
}

// Some of many products are looked at. If all have one size, these stand for all.
TEST(HopperEstimateOf, ALargeGroupIsAsLongAsItsProducts) {
  const std::vector<int64_t> extents(1000, 128);
  const double one = EstimateHopper(kConfig, Sized(128, 256, 512));
  EXPECT_NEAR(EstimateHopper(kConfig, GroupByM(extents, 256, 512)), 1000 * one, one);
}

TEST(HopperEstimateOf, AnEmptyProductHasOne) {
  for (const Problem& p : {Sized(0, 64, 64), Sized(64, 0, 64), Sized(64, 64, 0)}) {
    const double seconds = EstimateHopper(kConfig, p);
    EXPECT_TRUE(std::isfinite(seconds) && seconds > 0) << seconds;
  }
}

// A small D has a tile for each multiprocessor, or blocks that share k. 128 x 128 takes few bytes.
TEST(HopperEstimate, OfF32x3TakesSmallTilesForASmallD) {
  const auto fastest = [](int64_t edge, int64_t k) {
    const Problem p = {.m = edge,
                       .n = edge,
                       .k = k,
                       .types = {DType::kF32, DType::kF32, DType::kF32, Compute::kF32x3}};
    const auto configs = HopperF32x3Configs();
    const auto least = std::min_element(
        configs.begin(), configs.end(),
        [&](const auto& x, const auto& y) { return EstimateHopper(x, p) < EstimateHopper(y, p); });
    return std::string(HopperName("f32x3", *least).view());
  };
  EXPECT_EQ(fastest(160, 8192), "hopper_f32x3_64x64x32_s8_coop1_l2");
  EXPECT_EQ(fastest(1024, 8192), "hopper_f32x3_128x128x32_s4_coop2_k2_l2");
  EXPECT_EQ(fastest(4096, 4096), "hopper_f32x3_128x128x32_s4_coop2");
}

}  // namespace
}  // namespace gemm
