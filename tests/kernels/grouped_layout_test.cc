// The grouped kernels' layouts in shared memory: no place is used twice, none is outside,
// and no access has a bank conflict.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "kernels/grouped/accumulator_tile.h"
#include "kernels/grouped/config.h"
#include "tests/kernels/bank_conflicts.h"

namespace gemm {
namespace {

using testing::BankConflicts;

// The configurations of all rows. They are from the lists, as the catalogue has no such rows
// without CUDA.
std::vector<GroupedConfig> Configs() {
  std::vector<GroupedConfig> configs;
  for (const DType type : {DType::kF16, DType::kBF16}) {
    for (const GroupedConfig& config : Grouped16BitConfigs(type)) configs.push_back(config);
  }
  for (const DType type : {DType::kE4M3, DType::kE5M2}) {
    for (const GroupedConfig& config : Grouped8BitConfigs(type)) configs.push_back(config);
  }
  return configs;
}

std::vector<SharedTile> Tiles() {
  std::vector<SharedTile> tiles;
  for (const GroupedConfig& config : Configs()) {
    tiles.push_back(config.tile_a());
    tiles.push_back(config.tile_b());
  }
  return tiles;
}

// The offsets that `offset` gives for 0 to count - 1.
std::vector<int> Offsets(int count, const std::function<int(int)>& offset) {
  std::vector<int> offsets;
  for (int x = 0; x < count; ++x) offsets.push_back(offset(x));
  return offsets;
}

TEST(GroupedConfig, WarpsShareTheTile) {
  for (const GroupedConfig& config : Configs()) {
    EXPECT_EQ(config.warp_m() * config.warp_n() * config.warps, config.tile_m * config.tile_n);
    EXPECT_EQ(config.tile_n % config.warp_n(), 0);
    EXPECT_EQ(config.warps % config.warps_n(), 0);
    EXPECT_EQ(config.warps / config.warps_n() * config.warp_m(), config.tile_m);
  }
}

TEST(SharedTile, EachChunkHasItsPlace) {
  for (const SharedTile& tile : Tiles()) {
    std::set<int> offsets;
    for (int row = 0; row < tile.rows; ++row) {
      for (int chunk = 0; chunk < tile.chunks(); ++chunk) {
        const int offset = tile.Offset(row, chunk);
        EXPECT_EQ(offset % kChunkBytes, 0);
        EXPECT_GE(offset, 0);
        EXPECT_LT(offset, tile.bytes());
        EXPECT_TRUE(offsets.insert(offset).second) << row << ", " << chunk;
      }
    }
  }
}

// The copies and fragment loads rely on this.
TEST(SharedTile, OffsetsAddUpByXor) {
  for (const SharedTile& tile : Tiles()) {
    for (int row = 0; row < tile.rows; ++row) {
      for (int chunk = 0; chunk < tile.chunks(); ++chunk) {
        EXPECT_EQ(tile.Offset(row, chunk), tile.Offset(row, 0) ^ tile.Offset(0, chunk));
        for (int bit = 1; bit < tile.rows; bit *= 2) {
          EXPECT_EQ(tile.Offset(row ^ bit, chunk), tile.Offset(row, chunk) ^ tile.Offset(bit, 0));
        }
      }
    }
  }
}

TEST(SharedTile, PlacesBesideAreThoseOfTheRowAndChunk) {
  for (const SharedTile& tile : Tiles()) {
    for (int row = 0; row < tile.rows; ++row) {
      for (int chunk = 0; chunk < tile.chunks(); ++chunk) {
        ASSERT_EQ(tile.Beside(tile.Offset(row % 8, 0), row / 8 * 8, chunk), tile.Offset(row, chunk))
            << tile.rows << " x " << tile.row_bytes << ": " << row << ", " << chunk;
      }
    }
  }
}

// Eight rows further on the layout repeats, so the address of its first row names a block of rows.
TEST(SharedTile, EightRowsAreTheUnitOfTheSwizzle) {
  for (const SharedTile& tile : Tiles()) {
    for (int row = 0; row + 8 < tile.rows; ++row) {
      for (int chunk = 0; chunk < tile.chunks(); ++chunk) {
        EXPECT_EQ(tile.Offset(row + 8, chunk), tile.Offset(row, chunk) + 8 * tile.span());
      }
    }
  }
}

// The layouts of wgmma's descriptors: Swizzle<3, 4, 3>, <2, 4, 3> or <1, 4, 3> of
// the dense panel (CUTLASS, cute/atom/mma_traits_sm90_gmma.hpp).
TEST(SharedTile, IsWhatWgmmaTakes) {
  for (const SharedTile& tile : Tiles()) {
    const int mask = tile.span() / kChunkBytes - 1;
    for (int row = 0; row < tile.rows; ++row) {
      for (int chunk = 0; chunk < tile.chunks(); ++chunk) {
        const int panel = chunk * kChunkBytes / tile.span();
        const int dense = row * tile.span() + chunk * kChunkBytes % tile.span();
        EXPECT_EQ(tile.Offset(row, chunk),
                  panel * tile.panel_bytes() + (dense ^ (dense >> 7 & mask) << 4));
      }
    }
  }
}

// A quarter of a warp copies eight chunks, along rows and then down.
TEST(SharedTile, CopiesMeetNoBankTwice) {
  for (const SharedTile& tile : Tiles()) {
    for (int first = 0; first < tile.rows * tile.chunks(); first += 8) {
      EXPECT_EQ(BankConflicts(Offsets(8,
                                      [&](int lane) {
                                        const int x = first + lane;
                                        return tile.Offset(x / tile.chunks(), x % tile.chunks());
                                      }),
                              kChunkBytes),
                0);
    }
  }
}

// ldmatrix reads one chunk of each of eight rows.
TEST(SharedTile, FragmentLoadsMeetNoBankTwice) {
  for (const SharedTile& tile : Tiles()) {
    for (int row = 0; row < tile.rows; row += 8) {
      for (int chunk = 0; chunk < tile.chunks(); ++chunk) {
        EXPECT_EQ(
            BankConflicts(Offsets(8, [&](int lane) { return tile.Offset(row + lane, chunk); }),
                          kChunkBytes),
            0);
      }
    }
  }
}

class AccumulatorTiles : public ::testing::TestWithParam<int> {
 protected:
  AccumulatorTile tile() const { return {32, GetParam()}; }
};

TEST_P(AccumulatorTiles, EachQuadHasItsPlace) {
  std::set<int> offsets;
  for (int row = 0; row < tile().rows; ++row) {
    for (int quad = 0; quad < tile().cols / 4; ++quad) {
      const int offset = tile().Offset(row, quad);
      EXPECT_EQ(offset % 16, 0);
      EXPECT_GE(offset, 0);
      EXPECT_LT(offset, tile().bytes());
      EXPECT_TRUE(offsets.insert(offset).second) << row << ", " << quad;
    }
  }
}

TEST_P(AccumulatorTiles, PlacesBesideAreThoseOfTheRowAndQuad) {
  for (int row = 0; row < tile().rows; ++row) {
    for (int quad = 0; quad < tile().cols / 4; ++quad) {
      EXPECT_EQ(tile().Beside(tile().Offset(row % 8, quad % 2), row / 8 * 8, quad / 2 * 2),
                tile().Offset(row, quad))
          << row << ", " << quad;
    }
  }
}

// Half a warp writes pairs of accumulators: lane l those of row l / 4 from column
// 2 (l % 4) on, of eight columns.
TEST_P(AccumulatorTiles, WritesMeetNoBankTwice) {
  for (int row = 0; row < tile().rows; row += 4) {
    for (int col = 0; col < tile().cols; col += 8) {
      EXPECT_EQ(BankConflicts(Offsets(16,
                                      [&](int lane) {
                                        return tile().Offset(row + lane / 4,
                                                             col / 4 + lane % 4 / 2) +
                                               lane % 2 * 8;
                                      }),
                              8),
                0);
    }
  }
}

// A quarter of a warp reads a quad of each of eight runs of `run` accumulators.
TEST_P(AccumulatorTiles, ReadsMeetNoBankTwice) {
  for (const int run : {4, 8}) {
    const int runs_per_row = tile().cols / run;
    for (int first = 0; first < tile().rows * runs_per_row; first += 8) {
      for (int quad = 0; quad < run / 4; ++quad) {
        EXPECT_EQ(BankConflicts(Offsets(8,
                                        [&](int lane) {
                                          const int x = first + lane;
                                          return tile().Offset(x / runs_per_row,
                                                               x % runs_per_row * (run / 4) + quad);
                                        }),
                                16),
                  0);
      }
    }
  }
}

// Rounded to 16 bits: a lane writes two of row l / 4, a quarter of a warp reads
// eight chunks.
TEST_P(AccumulatorTiles, RoundedPairsMeetNoBankTwice) {
  const SharedTile rounded{tile().rows, tile().cols * 2};
  for (int row = 0; row < rounded.rows; row += 8) {
    for (int chunk = 0; chunk < rounded.chunks(); ++chunk) {
      EXPECT_EQ(BankConflicts(Offsets(32,
                                      [&](int lane) {
                                        return rounded.Offset(row + lane / 4, chunk) + lane % 4 * 4;
                                      }),
                              4),
                0);
    }
  }
  for (int first = 0; first < rounded.rows * rounded.chunks(); first += 8) {
    EXPECT_EQ(BankConflicts(Offsets(8,
                                    [&](int lane) {
                                      const int x = first + lane;
                                      return rounded.Offset(x / rounded.chunks(),
                                                            x % rounded.chunks());
                                    }),
                            16),
              0);
  }
}

INSTANTIATE_TEST_SUITE_P(Columns, AccumulatorTiles, ::testing::Values(32, 64, 128, 256),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
}  // namespace gemm
