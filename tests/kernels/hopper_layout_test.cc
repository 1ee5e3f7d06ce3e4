// The Hopper kernels: the quantities that follow from their configurations, and the boxes in shared
// memory through which they store D.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/hopper/box.h"
#include "kernels/hopper/configs.h"
#include "kernels/hopper/row.h"
#include "kernels/hopper/stack_order.h"
#include "kernels/hopper/tile_order.h"
#include "tests/kernels/bank_conflicts.h"

namespace gemm {
namespace {

using testing::BankConflicts;

constexpr int kWarpsOfGroup = 4, kLanesOfWarp = 32, kRowsOfBox = HopperConfig{}.box_rows();

std::vector<HopperConfig> EveryConfig() {
  std::vector<HopperConfig> all;
  const auto add = [&](const auto& configs) {
    all.insert(all.end(), configs.begin(), configs.end());
  };
  add(Hopper16BitConfigs(DType::kF16));
  add(HopperF16Acc16Configs());
  add(HopperTf32Configs());
  add(HopperF32x3Configs());
  add(HopperS8Configs());
  add(Hopper8BitConfigs(DType::kE4M3));
  return all;
}

TEST(HopperConfig, EveryRowIsValid) {
  for (const HopperConfig& config : EveryConfig()) {
    EXPECT_TRUE(config.valid()) << HopperName(Name(config.operand), config).view();
  }
}

// For every tile of each product, and for all heights of groups.
TEST(HopperTileOrder, IsTheGroupedOrderOfEachProduct) {
  for (const int m : {1, 2, 7, 16}) {
    for (const int n : {1, 3, 8}) {
      for (int group = 1; group <= m; ++group) {
        constexpr int kProducts = 5;
        const HopperTileOrder order(m, n, group, kProducts);
        ASSERT_EQ(order.clusters(), m * n * kProducts);
        for (int index = 0; index < order.clusters(); ++index) {
          ASSERT_EQ(order.Product(index), index / (m * n)) << index;
          ASSERT_EQ(order.Tile(index), GroupedTile(index % (m * n), m, n, group))
              << index << " of " << m << " x " << n << " in groups of " << group;
        }
      }
    }
  }
}

// A product, and row and column of a tile of it.
using TileOfStack = std::tuple<int, int, int>;

// How often the blocks of a grid take each tile of a stack, each block with a cursor of its own.
std::map<TileOfStack, int> TilesOf(const HopperStackOrder& order, int blocks) {
  std::map<TileOfStack, int> taken;
  for (int block = 0; block < blocks; ++block) {
    int place = 0;
    for (int index = block; index < order.tiles(); index += blocks) {
      place = order.PlaceOf(index, place);
      const TileCoord tile = order.Tile(index, place);
      ++taken[{order.Product(place), tile.m, tile.n}];
    }
  }
  return taken;
}

std::vector<std::vector<int64_t>> Stacks() {
  std::mt19937 random(31);
  std::vector<std::vector<int64_t>> stacks = {
      {1}, {0, 1}, {1, 0}, {0, 0, 128, 0, 129, 0}, {127, 128, 129, 1}, {5000, 0, 3, 900}};
  std::vector<int64_t> most;
  for (int i = 0; i < HopperStackOrder::kMostProducts; ++i) {
    most.push_back(random() % 3 == 0 ? static_cast<int64_t>(random() % 400) : 0);
  }
  most.back() = 7;
  stacks.push_back(most);
  return stacks;
}

// Products without rows have no tiles, however far the next one with rows is.
TEST(HopperStackOrder, HasEachTileOfEachProductOnce) {
  constexpr int kTileRows = 128, kFirstProduct = 512;
  for (const std::vector<int64_t>& extents : Stacks()) {
    for (const int columns : {1, 6}) {
      for (const int group : {1, 3, 16}) {
        const HopperStackOrder order(extents, /*row=*/1000, kFirstProduct, kTileRows, columns,
                                     group);
        std::map<TileOfStack, int> expected;
        for (size_t i = 0; i < extents.size(); ++i) {
          for (int m = 0; m < (extents[i] + kTileRows - 1) / kTileRows; ++m) {
            for (int n = 0; n < columns; ++n) {
              expected[{kFirstProduct + static_cast<int>(i), m, n}] = 1;
            }
          }
        }
        ASSERT_EQ(order.tiles(), static_cast<int>(expected.size()));
        for (const int blocks : {1, 5, 132}) EXPECT_EQ(TilesOf(order, blocks), expected);
      }
    }
  }
}

TEST(HopperStackOrder, KnowsTheRowsOfEachProduct) {
  const std::vector<int64_t> extents = {3, 0, 200, 0, 0, 1};
  const HopperStackOrder order(extents, /*row=*/40, /*product=*/0, 64, 2, 4);
  int64_t row = 40;
  for (int place = 0; place < 6; ++place) {
    EXPECT_EQ(order.FirstRow(place), row) << place;
    row += extents[static_cast<size_t>(place)];
    EXPECT_EQ(order.EndRow(place), row) << place;
  }
}

// Neighbours in the order share a column of B, and no group is lower than asked for. So 7 rows of
// tiles in groups of 3 are a group of 3 and one of 4.
TEST(HopperStackOrder, GroupsRunColumnByColumnAndTheLastTakesTheRest) {
  constexpr int kColumns = 2;
  const std::vector<int64_t> extents = {64, 7 * 64 - 1};
  const HopperStackOrder order(extents, 0, 0, 64, kColumns, 3);
  std::vector<TileCoord> tiles;
  for (int index = kColumns; index < order.tiles(); ++index) {
    ASSERT_EQ(order.PlaceOf(index, 0), 1);
    tiles.push_back(order.Tile(index, 1));
  }
  EXPECT_EQ(tiles, (std::vector<TileCoord>{{0, 0},
                                           {1, 0},
                                           {2, 0},
                                           {0, 1},
                                           {1, 1},
                                           {2, 1},
                                           {3, 0},
                                           {4, 0},
                                           {5, 0},
                                           {6, 0},
                                           {3, 1},
                                           {4, 1},
                                           {5, 1},
                                           {6, 1}}));
}

// Every launch copies all of it, even for few products.
TEST(HopperStackOrder, IsSmall) { EXPECT_LE(sizeof(HopperStackOrder), 4096u + 64); }

TEST(Divisor, DividesAsTheOperatorDoes) {
  constexpr int kMost = std::numeric_limits<int>::max();
  std::mt19937 random(20);
  std::vector<int> divisors = {1, 2, 3, 5, 7, 641, 65535, 65536, kMost / 2, kMost - 1, kMost};
  for (int bits = 1; bits < 31; ++bits) {
    divisors.push_back(static_cast<int>((random() >> 1) % (1u << bits)) + 1);
    divisors.push_back(1 << bits);
    divisors.push_back((1 << bits) + 1);
  }
  for (const int divisor : divisors) {
    const Divisor by(divisor);
    ASSERT_EQ(by.value(), divisor);
    for (int round = 0; round < 1000; ++round) {
      const int any = static_cast<int>(random() >> 1);
      const int multiple = any / divisor * divisor;
      for (const int dividend : {any, multiple, std::max(multiple - 1, 0), kMost, 0}) {
        ASSERT_EQ(by.Quotient(dividend), dividend / divisor) << dividend << " / " << divisor;
      }
    }
  }
}

// Boxes and tiles begin at the boundary from which TMA and wgmma count rows of a box.
TEST(HopperConfig, TilesAndBoxesBeginOnRowsOfASwizzle) {
  constexpr int kSwizzleBytes = 1024;
  for (const HopperConfig& config : EveryConfig()) {
    SCOPED_TRACE(HopperName(Name(config.operand), config).view());
    EXPECT_EQ(config.tile_a_bytes() % kSwizzleBytes, 0);
    EXPECT_EQ(config.stage_bytes() % kSwizzleBytes, 0);
    EXPECT_EQ(config.box_bytes() % kSwizzleBytes, 0);
    EXPECT_EQ(config.d_tile_m() % config.box_rows(), 0);
  }
}

TEST(HopperConfig, WhatDoesNotFitIsNotValid) {
  const HopperConfig fits{.tile_m = 128, .tile_n = 256, .stages = 4};
  ASSERT_TRUE(fits.valid());
  HopperConfig config = fits;
  config.stages = 5;  // more shared memory than a block has
  EXPECT_FALSE(config.valid());
  config = fits;
  config.cluster_m = 2;
  config.stages = 3;
  EXPECT_TRUE(config.valid());
  config.groups = true;  // the neighbour's tile may be another product's
  EXPECT_FALSE(config.valid());
  config = fits;
  config.tile_m = 64;  // two warpgroups, 64 rows
  EXPECT_FALSE(config.valid());
  config = {.tile_m = 64, .tile_n = 64, .stages = 4, .consumers = 1, .cluster_m = 2};
  EXPECT_FALSE(config.valid());  // half a box of B for each block
  config = {.tile_m = 128, .tile_n = 64, .stages = 4, .split = 2};
  EXPECT_FALSE(config.valid());  // half a box of D for each block
  config = {.tile_m = 128, .tile_n = 128, .stages = 4, .cluster_m = 2, .cluster_n = 2};
  EXPECT_FALSE(config.valid());
  config = {.tile_m = 128, .tile_n = 160, .stages = 4};
  EXPECT_FALSE(config.valid());  // boxes of 64 columns
  config.swap = true;
  EXPECT_TRUE(config.valid());
  config.accumulator = DType::kF16;
  EXPECT_TRUE(config.valid());
  config.operand = DType::kBF16;  // wgmma has no sums of bf16 in f16
  EXPECT_FALSE(config.valid());
  config = {.operand = DType::kE4M3, .tile_m = 192, .tile_n = 128, .stages = 4, .consumers = 3};
  EXPECT_TRUE(config.valid());
  config.schedule = HopperSchedule::kPingPong;  // of two
  EXPECT_FALSE(config.valid());
  config = {
      .tile_m = 256, .tile_n = 64, .stages = 4, .consumers = 4};  // more registers than it has
  EXPECT_FALSE(config.valid());
}

// Multiplying threads take the registers that the launch and the loading threads leave to them.
TEST(HopperConfig, RegistersAreThoseOfTheMultiprocessor) {
  for (const int consumers : {2, 3}) {
    const HopperConfig config{.consumers = consumers};
    ASSERT_TRUE(config.moves_registers());
    EXPECT_EQ(config.loading_registers() % 8, 0);
    EXPECT_EQ(config.multiplying_registers() % 8, 0);
    // The launch gives each thread as many, in steps of 8.
    const int launched = HopperConfig::kRegisters / config.threads() / 8 * 8;
    EXPECT_LE(config.loading_registers() + consumers * config.multiplying_registers(),
              (1 + consumers) * launched);
  }
}

TEST(HopperName, FollowsFromTheConfiguration) {
  const HopperConfig shares{.tile_m = 128, .tile_n = 256, .stages = 3, .cluster_m = 2, .boxes = 4};
  EXPECT_EQ(HopperName("f16", shares).view(), "hopper_f16_128x256x64_s3_coop2_m2_b4");
  EXPECT_EQ(HopperSummary(shares).view(),
            "TMA, wgmma, 2 warpgroups that multiply together; 2 blocks share B");
  const HopperConfig turns{.tile_m = 128,
                           .tile_n = 128,
                           .stages = 6,
                           .schedule = HopperSchedule::kPingPong,
                           .cluster_n = 2};
  EXPECT_EQ(HopperName("bf16", turns).view(), "hopper_bf16_128x128x64_s6_pingpong2_n2");
  const HopperConfig split{.tile_m = 128, .tile_n = 128, .stages = 6, .split = 2};
  EXPECT_EQ(HopperName("f16", split).view(), "hopper_f16_128x128x64_s6_coop2_k2");
  const HopperConfig swap{.tile_m = 64,
                          .tile_n = 16,
                          .stages = 10,
                          .consumers = 1,
                          .cluster_m = 2,
                          .split = 2,
                          .swap = true};
  EXPECT_EQ(HopperName("f16", swap).view(), "hopper_f16_16x64x64_s10_coop1_n2_k2_swap");
  EXPECT_EQ(HopperSummary(swap).view(),
            "TMA, wgmma, one warpgroup that multiplies; 2 blocks share A; 2 blocks share k; "
            "multiplies D transposed");
  const HopperConfig fp8{.operand = DType::kE4M3, .tile_m = 128, .tile_n = 256, .stages = 4};
  EXPECT_EQ(HopperName("e4m3", fp8).view(), "hopper_e4m3_128x256x128_s4_coop2");
  const HopperConfig three{.operand = DType::kE4M3,
                           .tile_m = 192,
                           .tile_n = 128,
                           .stages = 4,
                           .consumers = 3,
                           .cluster_m = 2};
  EXPECT_EQ(HopperName("e4m3", three).view(), "hopper_e4m3_192x128x128_s4_coop3_m2");
  EXPECT_EQ(HopperSummary(three).view(),
            "TMA, wgmma, 3 warpgroups that multiply together; 2 blocks share B");
  const HopperConfig tf32{.operand = DType::kF32, .tile_m = 128, .tile_n = 256, .stages = 4};
  EXPECT_EQ(HopperName("tf32", tf32).view(), "hopper_tf32_128x256x32_s4_coop2");
  const HopperConfig f32x3{.operand = DType::kF32,
                           .tile_m = 128,
                           .tile_n = 64,
                           .stages = 6,
                           .f32x3 = true,
                           .two_levels = true};
  EXPECT_EQ(HopperName("f32x3", f32x3).view(), "hopper_f32x3_128x64x32_s6_coop2_l2");
  EXPECT_EQ(HopperSummary(f32x3).view(),
            "TMA, wgmma, 2 warpgroups that multiply together; adds up in two levels");
}

// A stage has A once, and B as high and as low numbers.
TEST(HopperConfig, AStageOfF32x3HasTwoTilesOfB) {
  HopperConfig config{.operand = DType::kF32, .tile_m = 128, .tile_n = 64, .stages = 2};
  EXPECT_EQ(config.stage_bytes(), (128 + 64) * 128);
  config.f32x3 = true;
  EXPECT_EQ(config.stage_bytes(), (128 + 2 * 64) * 128);
  EXPECT_TRUE(config.valid());
  config.groups = true;
  EXPECT_FALSE(config.valid());
}

// 132 blocks at a time: 11 by 12 tiles that are square, more rows where they are wide.
TEST(HopperGroup, CoversAsManyRowsAsColumns) {
  const HopperConfig square{.tile_m = 128, .tile_n = 128};
  const HopperConfig wide{.tile_m = 128, .tile_n = 256};
  EXPECT_EQ(HopperGroup(square, 1100, 132), 11);
  EXPECT_EQ(HopperGroup(wide, 1600, 132), 16);
  EXPECT_EQ(HopperGroup(square, 12, 132), 6);  // two of 6, not 11 and 1
  EXPECT_EQ(HopperGroup(square, 1, 132), 1);
  EXPECT_EQ(HopperGroup(square, 7, 1), 1);
}

TEST(HopperBox, EachChunkHasItsPlace) {
  std::set<int> offsets;
  for (int row = 0; row < kRowsOfBox; ++row) {
    for (int chunk = 0; chunk < 8; ++chunk) offsets.insert(ChunkOfBox(row, chunk));
  }
  EXPECT_EQ(offsets.size(), kRowsOfBox * 8u);
  EXPECT_EQ(*offsets.rbegin(), HopperConfig{}.box_bytes() - 16);
}

// Rows of 16 bytes. stmatrix writes eight at a time.
TEST(HopperBox, MatricesFillItWithoutConflicts) {
  std::set<int> all;
  for (int warp = 0; warp < kWarpsOfGroup; ++warp) {
    for (int pair = 0; pair < 4; ++pair) {
      std::vector<int> offsets;
      for (int lane = 0; lane < kLanesOfWarp; ++lane) {
        offsets.push_back(MatrixRowOfBox(warp, lane, pair));
      }
      EXPECT_EQ(BankConflicts(offsets, 16), 0) << "warp " << warp << ", pair " << pair;
      all.insert(offsets.begin(), offsets.end());
    }
  }
  EXPECT_EQ(all.size(), HopperConfig{}.box_bytes() / 16u);
}

// The transpose: a box of 32 rows, 64 columns.
TEST(HopperBox, TransposedMatricesFillItWithoutConflicts) {
  std::set<int> all;
  for (int warp = 0; warp < kWarpsOfGroup; ++warp) {
    for (int pair = 0; pair < 2; ++pair) {
      std::vector<int> offsets;
      for (int lane = 0; lane < kLanesOfWarp; ++lane) {
        offsets.push_back(TransposedRowOfBox(warp, lane, pair));
      }
      EXPECT_EQ(BankConflicts(offsets, 16), 0) << "warp " << warp << ", pair " << pair;
      all.insert(offsets.begin(), offsets.end());
    }
  }
  EXPECT_EQ(all.size(), 32u * 8);
  EXPECT_EQ(*all.rbegin(), 32 * kBoxRowBytes - 16);
}

// Matrix x of a lane's words has columns from 16 warp + 8 (x % 2) on, rows from 16 pair + 8 (x /
// 2).
TEST(HopperBox, TransposedMatricesAreWhereTheirAccumulatorsBelong) {
  for (int matrix = 0; matrix < 4; ++matrix) {
    const int lane = matrix * 8 + 3, warp = 2, pair = 1;
    EXPECT_EQ(TransposedRowOfBox(warp, lane, pair),
              ChunkOfBox(16 * pair + 8 * (matrix / 2) + 3, 2 * warp + matrix % 2));
  }
}

// A box of 32 rows and 32 columns of floats, by two warps.
TEST(HopperBox, TransposedFloatsFillItWithoutConflicts) {
  std::set<int> all;
  for (int warp = 0; warp < 2; ++warp) {
    for (int step = 0; step < 16; ++step) {
      std::vector<int> offsets;
      for (int lane = 0; lane < kLanesOfWarp; ++lane) {
        offsets.push_back(TransposedOfBox(warp, lane, step % 2, step / 4, step / 2 % 2));
      }
      EXPECT_EQ(BankConflicts(offsets, 4), 0) << "warp " << warp << ", step " << step;
      all.insert(offsets.begin(), offsets.end());
    }
  }
  EXPECT_EQ(all.size(), 32u * 32);
}

// Each of the two halves of a warp takes two passes: neighbouring rows of an even and an odd
// index have their chunks in the same banks.
TEST(HopperBox, PairsFillItInTwoPasses) {
  std::set<int> all;
  for (int warp = 0; warp < kWarpsOfGroup; ++warp) {
    for (int step = 0; step < 8; ++step) {
      std::vector<int> offsets;
      for (int lane = 0; lane < kLanesOfWarp; ++lane) {
        offsets.push_back(PairOfBox(warp, lane, step / 4, step % 4));
      }
      EXPECT_EQ(BankConflicts(offsets, 8), 2) << "warp " << warp << ", step " << step;
      all.insert(offsets.begin(), offsets.end());
    }
  }
  EXPECT_EQ(all.size(), HopperConfig{}.box_bytes() / 8u);
}

}  // namespace
}  // namespace gemm
