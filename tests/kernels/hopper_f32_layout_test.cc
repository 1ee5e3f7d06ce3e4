// f32 on CUDA cores by TMA: the elements that the threads of a block multiply, and the places of
// their operands in shared memory.
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "kernels/hopper/box.h"
#include "kernels/hopper/f32/config.h"
#include "kernels/hopper/f32/lines.h"
#include "kernels/hopper/f32/row.h"
#include "kernels/hopper/f32/stream.h"
#include "tests/kernels/bank_conflicts.h"

namespace gemm {
namespace {

using testing::BankConflicts;

constexpr int kTileK = HopperF32Config::kTileK, kChunk = HopperF32Config::kChunk;

template <int kIndex>
struct Row {
  static constexpr HopperF32Config kConfig = kHopperF32Configs[kIndex];
  static std::string Name() { return std::string(HopperF32Name(kConfig).view()); }
};

// Calls visitor.template operator()<Variant, kTransA, kTransB>() for every kernel of every row.
template <class Visitor, int kIndex = 0>
void ForEachKernel(const Visitor& visitor) {
  if constexpr (kIndex < static_cast<int>(std::size(kHopperF32Configs))) {
    using Variant = Row<kIndex>;
    constexpr HopperF32Config kConfig = Variant::kConfig;
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, Variant::Name());
    visitor.template operator()<Variant, true, false>();
    if constexpr (kConfig.along_k()) {
      visitor.template operator()<Variant, false, false>();
      visitor.template operator()<Variant, true, true>();
      visitor.template operator()<Variant, false, true>();
    }
    ForEachKernel<Visitor, kIndex + 1>(visitor);
  }
}

// The place of element (line, k) of a tile, by TMA.
template <class Lines>
int PlaceOf(int line, int k) {
  if (Lines::kIsAlongK) return ChunkOfBox(line, k / kChunk) + k % kChunk * 4;
  return k * Lines::kStepBytes + line * 4;
}

TEST(HopperF32Config, EveryRowIsValid) {
  for (const HopperF32Config& config : kHopperF32Configs) {
    EXPECT_TRUE(config.valid()) << HopperF32Name(config).view();
  }
}

TEST(HopperF32Config, WhatDoesNotFitIsNotValid) {
  const HopperF32Config fits{.tile_m = 128, .tile_n = 256, .stages = 4};
  ASSERT_TRUE(fits.valid());
  HopperF32Config config = fits;
  config.stages = 5;  // more shared memory than a block has
  EXPECT_FALSE(config.valid());
  config = fits;
  config.blocks_per_sm = 2;  // more than a multiprocessor has
  EXPECT_FALSE(config.valid());
  config = fits;
  config.tile_m = 48;  // a warp has 32 rows
  EXPECT_FALSE(config.valid());
  config = fits;
  config.tile_n = 128, config.tile_m = 64;  // two warps: no warpgroup
  EXPECT_FALSE(config.valid());
  config = fits;
  config.split = 3;  // a thread's rows are eight
  EXPECT_FALSE(config.valid());
  config = fits;
  config.stream = true;
  EXPECT_TRUE(config.valid());
  config.split = 2;
  EXPECT_FALSE(config.valid());
}

// Multiplying threads take the registers that the launch and the loading threads leave to them.
TEST(HopperF32Config, RegistersAreThoseOfTheMultiprocessor) {
  for (const HopperF32Config& config : kHopperF32Configs) {
    SCOPED_TRACE(HopperF32Name(config).view());
    EXPECT_EQ(config.registers() % 8, 0);
    EXPECT_EQ(config.multiplying_registers() % 8, 0);
    EXPECT_LE(config.multiplying_registers(), 255);
    EXPECT_LE(config.multiplying_registers() * config.consumers() +
                  HopperF32Config::kLoadingRegisters * 128,
              config.registers() * config.threads());
    // Every quarter of a multiprocessor has 512 registers for each lane.
    const int warps_of_quarter = config.threads() / 128 * config.blocks_per_sm;
    EXPECT_LE(warps_of_quarter * config.registers(), 512);
  }
}

TEST(HopperF32Config, StagesBeginOnRowsOfASwizzle) {
  for (const HopperF32Config& config : kHopperF32Configs) {
    EXPECT_EQ(config.tile_a_bytes() % 1024, 0) << HopperF32Name(config).view();
    EXPECT_EQ(config.stage_bytes() % 1024, 0) << HopperF32Name(config).view();
  }
}

TEST(HopperF32Name, FollowsFromTheConfiguration) {
  EXPECT_EQ(HopperF32Name({.tile_m = 128, .tile_n = 256, .stages = 4}).view(),
            "hopper_f32_128x256x32_s4_t8x16");
  const HopperF32Config all{.tile_m = 128,
                            .tile_n = 128,
                            .stages = 3,
                            .thread_n = 8,
                            .lanes_m = 8,
                            .split = 4,
                            .blocks_per_sm = 2};
  EXPECT_EQ(HopperF32Name(all).view(), "hopper_f32_128x128x32_s3_t8x8_l8_k4_x2");
  EXPECT_EQ(
      HopperF32Summary(all).view(),
      "TMA, FFMA, 8x8 accumulators a thread, warps of 64x32; 4 blocks share k; 2 blocks an SM");
}

TEST(HopperF32Layout, ThreadsHaveEachElementOfTheTileOnce) {
  ForEachKernel([]<class Variant, bool kTransA, bool kTransB>() {
    constexpr HopperF32Config kConfig = Variant::kConfig;
    using Operands = HopperF32Operands<Variant, kTransA, kTransB>;
    std::vector<int> owners(static_cast<size_t>(kConfig.tile_m * kConfig.tile_n));
    for (int index = 0; index < kConfig.consumers(); ++index) {
      const HopperF32Thread<Variant> thread{index / 32, index % 32};
      for (int i = 0; i < kConfig.thread_m; ++i) {
        for (int j = 0; j < kConfig.thread_n; ++j) {
          const int row = thread.warp_row() + Operands::A::Line(thread.lane_m(), i);
          const int column = thread.warp_column() + Operands::B::Line(thread.lane_n(), j);
          ASSERT_LT(row, kConfig.tile_m);
          ASSERT_LT(column, kConfig.tile_n);
          ++owners[static_cast<size_t>(row * kConfig.tile_n + column)];
        }
      }
    }
    EXPECT_EQ(owners, std::vector<int>(owners.size(), 1));
  });
}

// Checks each element that a thread multiplies in a stage, at a tile's address.
template <class Lines>
void ExpectPlaces(unsigned tile, int warp_line, int lane) {
  const unsigned origin = tile + Lines::Origin(warp_line, lane);
  for (int k = 0; k < kTileK; ++k) {
    const unsigned at_chunk = Lines::AtChunk(origin, k / kChunk);
    for (int i = 0; i < Lines::kLines; ++i) {
      const unsigned at =
          Lines::kIsAlongK
              ? Lines::AtLine(at_chunk, i) + static_cast<unsigned>(k % kChunk * 4)
              : Lines::AtQuad(at_chunk, k % kChunk, i / 4) + static_cast<unsigned>(i % 4 * 4);
      const int place = PlaceOf<Lines>(warp_line + Lines::Line(lane, i), k);
      ASSERT_EQ(at, tile + static_cast<unsigned>(place)) << "line " << i << ", k " << k;
    }
  }
}

TEST(HopperF32Layout, ThreadsReadWhatTheyMultiply) {
  ForEachKernel([]<class Variant, bool kTransA, bool kTransB>() {
    constexpr HopperF32Config kConfig = Variant::kConfig;
    using Operands = HopperF32Operands<Variant, kTransA, kTransB>;
    for (int index = 0; index < kConfig.consumers(); ++index) {
      const HopperF32Thread<Variant> thread{index / 32, index % 32};
      const auto tile = static_cast<unsigned>(1024 + kConfig.stage_bytes());
      ExpectPlaces<typename Operands::A>(tile, thread.warp_row(), thread.lane_m());
      ExpectPlaces<typename Operands::B>(tile + static_cast<unsigned>(kConfig.tile_a_bytes()),
                                         thread.warp_column(), thread.lane_n());
    }
  });
}

// Both in the phases of eight lanes, and in half warps, which then take one pass each.
template <class Lines>
void ExpectNoConflicts(const std::vector<int>& lanes) {
  const int loads = Lines::kIsAlongK ? Lines::kLines : Lines::kLines / 4;
  for (int chunk = 0; chunk < kTileK / kChunk; ++chunk) {
    for (int load = 0; load < loads; ++load) {
      std::vector<int> offsets;
      for (const int lane : lanes) {
        const unsigned at_chunk = Lines::AtChunk(Lines::Origin(32, lane), chunk);
        const unsigned at =
            Lines::kIsAlongK ? Lines::AtLine(at_chunk, load) : Lines::AtQuad(at_chunk, 1, load);
        EXPECT_EQ(at % 16, 0u);
        offsets.push_back(static_cast<int>(at));
      }
      EXPECT_EQ(BankConflicts(offsets, 16), 0);
      EXPECT_EQ(BankConflicts(offsets, 16, 16), 0);
    }
  }
}

TEST(HopperF32Layout, LoadsHaveNoConflicts) {
  ForEachKernel([]<class Variant, bool kTransA, bool kTransB>() {
    using Operands = HopperF32Operands<Variant, kTransA, kTransB>;
    std::vector<int> lanes_m, lanes_n;
    for (int lane = 0; lane < 32; ++lane) {
      const HopperF32Thread<Variant> thread{0, lane};
      lanes_m.push_back(thread.lane_m());
      lanes_n.push_back(thread.lane_n());
    }
    ExpectNoConflicts<typename Operands::A>(lanes_m);
    ExpectNoConflicts<typename Operands::B>(lanes_n);
  });
}

// A run of D is four neighbours. The first is on a 16-byte boundary.
TEST(HopperF32Layout, ColumnsOfABAcrossKAreRuns) {
  ForEachKernel([]<class Variant, bool kTransA, bool kTransB>() {
    using B = typename HopperF32Operands<Variant, kTransA, kTransB>::B;
    if (kTransB) return;
    for (int lane = 0; lane < Variant::kConfig.lanes_n(); ++lane) {
      for (int j = 0; j < B::kLines; ++j) {
        EXPECT_EQ(B::Line(lane, j), B::Line(lane, j / 4 * 4) + j % 4);
        EXPECT_EQ(B::Line(lane, j), B::Line(lane, 0) + B::Line(0, j));
        EXPECT_EQ(B::Line(lane, j) % 4, j % 4);
      }
    }
  });
}

// The pieces that the blocks of a grid compute, in their turns.
std::vector<std::vector<HopperF32Piece>> PiecesOf(const HopperF32Stream& stream) {
  std::vector<std::vector<HopperF32Piece>> pieces(static_cast<size_t>(stream.blocks()));
  for (int block = 0; block < stream.blocks(); ++block) {
    for (int turn = 0;; ++turn) {
      const HopperF32Piece piece = PieceOf(stream, block, turn);
      if (piece.tile < 0) break;
      pieces[static_cast<size_t>(block)].push_back(piece);
    }
  }
  return pieces;
}

template <class Check>
void ForEachStream(const Check& check) {
  for (const int tiles : {1, 2, 5, 31, 32, 33, 63, 64, 65, 100, 128, 1000, 1024}) {
    for (const int running : {1, 7, 32, 132}) {
      for (const int k_tiles : {1, 2, 8, 9, 64, 257}) {
        SCOPED_TRACE(::testing::Message()
                     << tiles << " tiles of " << k_tiles << ", " << running << " blocks at a time");
        check(HopperF32Stream(tiles, running, k_tiles), tiles, k_tiles);
      }
    }
  }
}

TEST(HopperF32Stream, HasEachPartOfEachTileOnce) {
  ForEachStream([](const HopperF32Stream& stream, int tiles, int k_tiles) {
    std::vector<int> computed(static_cast<size_t>(tiles * k_tiles));
    for (const auto& of_block : PiecesOf(stream)) {
      for (const HopperF32Piece& piece : of_block) {
        ASSERT_LT(piece.tile, tiles);
        ASSERT_LT(piece.first_k, piece.end_k);
        ASSERT_LE(piece.end_k, k_tiles);
        for (int k = piece.first_k; k < piece.end_k; ++k) {
          ++computed[static_cast<size_t>(piece.tile * k_tiles + k)];
        }
      }
    }
    EXPECT_EQ(computed, std::vector<int>(computed.size(), 1));
  });
}

// A block has memory for the accumulators of one tile, and leaves them before it awaits others.
TEST(HopperF32Stream, ABlockLeavesAtMostOneTileAndAwaitsOthersLast) {
  ForEachStream([](const HopperF32Stream& stream, int, int k_tiles) {
    for (const auto& of_block : PiecesOf(stream)) {
      int left = 0;
      bool awaits = false;
      for (const HopperF32Piece& piece : of_block) {
        const bool leaves = piece.end_k < k_tiles;
        EXPECT_FALSE(awaits) << "tile " << piece.tile;
        left += leaves ? 1 : 0;
        awaits = !leaves && piece.first_k > 0;
      }
      EXPECT_LE(left, 1);
    }
  });
}

// The block with the end of a tile finds the begin with the blocks before, share by share.
TEST(HopperF32Stream, TheBlocksBeforeLeaveTheBeginOfATile) {
  ForEachStream([](const HopperF32Stream& stream, int, int k_tiles) {
    const auto pieces = PiecesOf(stream);
    for (int block = 0; block < stream.blocks(); ++block) {
      for (const HopperF32Piece& piece : pieces[static_cast<size_t>(block)]) {
        if (piece.end_k < k_tiles) continue;
        int end = piece.first_k;
        for (int before = block - 1; end > 0; --before) {
          ASSERT_GE(before, 0);
          bool found = false;
          for (const HopperF32Piece& part : pieces[static_cast<size_t>(before)]) {
            if (part.tile != piece.tile) continue;
            EXPECT_EQ(part.end_k, end);
            EXPECT_GE(part.first_k, end - (stream.BeginOf(before + 1) - stream.BeginOf(before)));
            end = part.first_k;
            found = true;
          }
          ASSERT_TRUE(found) << "block " << before << " has nothing of tile " << piece.tile;
        }
      }
    }
  });
}

// With 128 tiles, four SMs of 132 would be idle. Here the blocks' numbers of k-tiles differ by at
// most one.
TEST(HopperF32Stream, SharesThatNoIntCountsAreNone) {
  EXPECT_TRUE(HopperF32Stream(100, 132, 1 << 24).shares());
  EXPECT_FALSE(HopperF32Stream(100, 132, 1 << 25).shares());
}

TEST(HopperF32Stream, SharesAreEqual) {
  const HopperF32Stream stream(128, 132, 64);
  ASSERT_TRUE(stream.shares());
  EXPECT_EQ(stream.blocks(), 132);
  for (int block = 0; block < 132; ++block) {
    const int share = stream.BeginOf(block + 1) - stream.BeginOf(block);
    EXPECT_TRUE(share == 62 || share == 63) << share;
  }
  EXPECT_EQ(stream.BeginOf(132), 128 * 64);
  EXPECT_FALSE(HopperF32Stream(264, 132, 64).shares());
  EXPECT_EQ(HopperF32Stream(512, 132, 64).whole(), 2 * 132);
}

}  // namespace
}  // namespace gemm
