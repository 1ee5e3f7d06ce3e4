// The mma.sync family's layouts in shared memory, and the order in which its blocks take
// tiles.
#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <vector>

#include "kernels/core/tile_bands.h"
#include "kernels/core/tile_order.h"
#include "kernels/mma/tables.h"
#include "tests/kernels/bank_conflicts.h"

namespace gemm::mma {
namespace {

// The configurations of all rows.
std::vector<Config> Configs() {
  std::vector<Config> configs(std::begin(StageTable::kConfigs), std::end(StageTable::kConfigs));
  configs.insert(configs.end(), std::begin(DsmemTable::kConfigs), std::end(DsmemTable::kConfigs));
  configs.insert(configs.end(), std::begin(X2Table::kConfigs), std::end(X2Table::kConfigs));
  return configs;
}

// A panel, and the way its blocks are read and filled.
struct PanelUse {
  SharedPanel panel;
  BlockOrder order;
  int threads;
};

std::vector<PanelUse> Panels(bool (*chosen)(const Config&)) {
  std::vector<PanelUse> panels;
  for (const Config& config : Configs()) {
    if (!chosen(config)) continue;
    panels.push_back({config.panel_a(), config.order_a(), config.threads()});
    panels.push_back({config.panel_b(), config.order_b(), config.threads()});
  }
  return panels;
}

// Bank conflicts of the ldmatrix of all blocks of 16 rows by 2 units of a panel, over their
// four matrices of eight rows each.
int ReadConflicts(const SharedPanel& panel, BlockOrder order) {
  int conflicts = 0;
  for (int row = 0; row < panel.rows; row += 16) {
    for (int unit = 0; unit + 1 < panel.units; unit += 2) {
      std::vector<int> offsets;
      for (int lane = 0; lane < 32; ++lane) {
        const PanelUnit place = LaneUnit(order, lane);
        offsets.push_back(panel.Offset(row + place.row, unit + place.unit));
      }
      conflicts += testing::BankConflicts(offsets, kUnitBytes);
    }
  }
  return conflicts;
}

// Bank conflicts of the copies that fill a panel, eight threads' at a time.
int CopyConflicts(const SharedPanel& panel) {
  std::vector<int> offsets;
  for (int thread = 0; thread < panel.rows * panel.units; ++thread) {
    const PanelUnit place = CopiedUnit(panel, thread);
    offsets.push_back(panel.Offset(place.row, place.unit));
  }
  return testing::BankConflicts(offsets, kUnitBytes);
}

bool Any(const Config&) { return true; }
bool IsXor(const Config& config) { return config.layout == PanelLayout::kXor; }

TEST(MmaPanels, UnitsLieApartAndInBounds) {
  for (const auto& [panel, order, threads] : Panels(Any)) {
    std::set<int> offsets;
    for (int row = 0; row < panel.rows; ++row) {
      for (int unit = 0; unit < panel.units; ++unit) {
        const int offset = panel.Offset(row, unit);
        EXPECT_EQ(offset % kUnitBytes, 0);
        EXPECT_GE(offset, 0);
        EXPECT_LE(offset + kUnitBytes, panel.bytes());
        EXPECT_TRUE(offsets.insert(offset).second) << "row " << row << ", unit " << unit;
      }
    }
  }
}

// The kernels add this to an address instead of computing the address again.
TEST(MmaPanels, SixteenRowsFurtherOnAreSixteenPitches) {
  for (const auto& [panel, order, threads] : Panels(Any)) {
    for (int row = 16; row < panel.rows; ++row) {
      for (int unit = 0; unit < panel.units; ++unit) {
        EXPECT_EQ(panel.Offset(row, unit),
                  panel.Offset(row - 16, unit) + 16 * panel.pitch() * kUnitBytes);
      }
    }
  }
}

TEST(MmaPanels, StagesStartOnUnits) {
  for (const Config& config : Configs()) {
    EXPECT_EQ(config.panel_a().bytes() % kUnitBytes, 0);
    EXPECT_EQ(config.stage_bytes() % kUnitBytes, 0);
    // A block has 48 KiB without asking, and may have 99 KiB on every GPU from sm_80 on.
    EXPECT_LE(config.shared_bytes(), config.dynamic_shared ? 99 << 10 : 48 << 10);
  }
}

TEST(MmaPanels, EveryUnitIsCopiedOnce) {
  for (const auto& [panel, order, threads] : Panels(Any)) {
    std::set<int> copied;
    for (int thread = 0; thread < threads; ++thread) {
      const PanelUnit first = CopiedUnit(panel, thread);
      for (int row = first.row; row < panel.rows; row += threads / panel.units) {
        EXPECT_TRUE(copied.insert(panel.Offset(row, first.unit)).second);
      }
    }
    EXPECT_EQ(static_cast<int>(copied.size()), panel.rows * panel.units);
  }
}

TEST(MmaPanels, LanesAddressEachRowOfABlockOnce) {
  for (const BlockOrder order : {BlockOrder::kUnitMajor, BlockOrder::kRowMajor}) {
    std::set<int> seen;
    for (int lane = 0; lane < 32; ++lane) {
      const PanelUnit place = LaneUnit(order, lane);
      EXPECT_TRUE(place.row >= 0 && place.row < 16 && place.unit >= 0 && place.unit < 2);
      EXPECT_TRUE(seen.insert(place.row * 2 + place.unit).second) << "lane " << lane;
    }
  }
}

TEST(MmaPanels, LdmatrixHasNoBankConflicts) {
  for (const auto& [panel, order, threads] : Panels(Any)) {
    EXPECT_EQ(ReadConflicts(panel, order), 0) << panel.rows << " x " << panel.units;
  }
}

TEST(MmaPanels, XorLeavesNoBankConflictInCopiesEither) {
  const std::vector<PanelUse> panels = Panels(IsXor);
  ASSERT_FALSE(panels.empty());
  for (const auto& [panel, order, threads] : panels) {
    EXPECT_EQ(CopyConflicts(panel), 0) << panel.rows << " x " << panel.units;
  }
}

// The count is not always 0: padding alone does not suit short rows, and dense
// rows suit no reads.
TEST(MmaPanels, ConflictsAreCounted) {
  EXPECT_GT(CopyConflicts(Stages(2).panel_a()), 0);
  EXPECT_EQ(testing::BankConflicts({0, 128, 256, 384, 512, 640, 768, 896}, kUnitBytes), 7);
  EXPECT_EQ(testing::BankConflicts({0, 16, 32, 48, 128, 144, 160, 176}, kUnitBytes), 1);
}

TEST(MmaBands, SwizzleIsAStrideInElements) {
  EXPECT_EQ(BandTiles(0, 32, 128), 32);
  EXPECT_EQ(BandTiles(1, 32, 128), 1);
  EXPECT_EQ(BandTiles(1024, 32, 128), 8);
  EXPECT_EQ(BandTiles(65536, 32, 128), 32);
}

TEST(MmaBands, OwnChoiceIsEvenBands) {
  EXPECT_EQ(BandTiles(kOwnChoice, 1, 128), 1);
  EXPECT_EQ(BandTiles(kOwnChoice, 16, 128), 16);
  EXPECT_EQ(BandTiles(kOwnChoice, 17, 128), 9);
  EXPECT_EQ(BandTiles(kOwnChoice, 128, 128), 16);
}

}  // namespace
}  // namespace gemm::mma
