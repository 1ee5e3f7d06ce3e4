#include "client/cpp/products/row_blocks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd::client {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(RowBlocks, AreOfWholeTilesButForTheLast) {
  EXPECT_THAT(PlanRowBlocks(512, 4), ElementsAre(RowBlock{0, 128}, RowBlock{128, 128},
                                                 RowBlock{256, 128}, RowBlock{384, 128}));
  EXPECT_THAT(PlanRowBlocks(600, 2), ElementsAre(RowBlock{0, 384}, RowBlock{384, 216}));
  EXPECT_THAT(PlanRowBlocks(4096, 32), SizeIs(32));
}

TEST(RowBlocks, AreNoMoreThanTiles) {
  EXPECT_THAT(PlanRowBlocks(1, 64), ElementsAre(RowBlock{0, 1}));
  EXPECT_THAT(PlanRowBlocks(129, 64), ElementsAre(RowBlock{0, 128}, RowBlock{128, 1}));
  EXPECT_THAT(PlanRowBlocks(10000, 1), ElementsAre(RowBlock{0, 10000}));
}

TEST(RowBlocks, CoverEveryRowOnce) {
  for (int64_t rows = 1; rows < 3000; rows += 37) {
    for (int64_t blocks = 1; blocks < 40; ++blocks) {
      int64_t next = 0;
      for (const RowBlock& block : PlanRowBlocks(rows, blocks)) {
        ASSERT_EQ(block.first, next);
        ASSERT_GE(block.rows, 1);
        next += block.rows;
      }
      ASSERT_EQ(next, rows) << blocks;
    }
  }
}

}  // namespace
}  // namespace gemmd::client
