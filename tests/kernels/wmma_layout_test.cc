// The WMMA family's layouts in shared memory, of operands and accumulators.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "kernels/wmma/tables.h"
#include "tests/kernels/bank_conflicts.h"

namespace gemm::wmma {
namespace {

using testing::BankConflicts;

// The configurations of all rows.
std::vector<Config> Configs() {
  std::vector<Config> configs(std::begin(StepTable::kConfigs), std::end(StepTable::kConfigs));
  configs.insert(configs.end(), std::begin(StageTable::kConfigs), std::end(StageTable::kConfigs));
  configs.insert(configs.end(), std::begin(LargeTileTable::kConfigs),
                 std::end(LargeTileTable::kConfigs));
  configs.insert(configs.end(), std::begin(Tf32Table::kConfigs), std::end(Tf32Table::kConfigs));
  return configs;
}

std::vector<Panel> Panels(const Config& config) {
  return {config.panel_a(), config.panel_b(), config.strip()};
}

TEST(WmmaPanels, ElementsLieApartAndInBounds) {
  for (const Config& config : Configs()) {
    for (const Panel& panel : Panels(config)) {
      std::set<int> offsets;
      for (int row = 0; row < panel.rows; ++row) {
        for (int column = 0; column < panel.columns; ++column) {
          const int offset = panel.Offset(row, column);
          EXPECT_EQ(offset % panel.element_bytes, 0);
          EXPECT_LE(offset + panel.element_bytes, panel.bytes());
          EXPECT_TRUE(offsets.insert(offset).second);
        }
      }
    }
  }
}

// WMMA and vectors of one unit need this alignment.
TEST(WmmaPanels, FragmentsAndRowsAreAligned) {
  for (const Config& config : Configs()) {
    EXPECT_EQ(config.panel_a().bytes() % kFragmentAlignment, 0);
    EXPECT_EQ(config.stage_bytes() % kFragmentAlignment, 0);
    EXPECT_EQ(config.strip().bytes() % kFragmentAlignment, 0);
    const int fragment_rows[] = {config.wmma_m, config.wmma_k, config.wmma_m};
    for (int p = 0; p < 3; ++p) {
      const Panel panel = Panels(config)[static_cast<size_t>(p)];
      EXPECT_EQ(panel.pitch() % kUnitBytes, 0);
      for (int row = 0; row < panel.rows; row += fragment_rows[p]) {
        for (int column = 0; column < panel.columns; column += panel.fragment_columns) {
          EXPECT_EQ(panel.Offset(row, column) % kFragmentAlignment, 0);
        }
      }
    }
  }
}

TEST(WmmaPanels, FitWhatABlockMayHave) {
  for (const Config& config : Configs()) {
    // A block has 48 KiB without asking, and may ask for 163 KiB on sm_80. Some of the large tiles
    // need more than the 99 KiB of sm_86 and sm_89; the launch says so.
    EXPECT_LE(config.shared_bytes(), config.dynamic_shared ? 163 << 10 : 48 << 10);
  }
}

TEST(WmmaPanels, EveryUnitIsCopiedOnce) {
  for (const Config& config : Configs()) {
    for (const Panel& panel : {config.panel_a(), config.panel_b()}) {
      std::set<int> copied;
      for (int thread = 0; thread < config.threads(); ++thread) {
        const UnitPlace first = CopiedUnit(panel, thread);
        for (int row = first.row; row < panel.rows; row += config.threads() / panel.row_units()) {
          EXPECT_TRUE(copied.insert(panel.Offset(row, first.column)).second);
        }
      }
      EXPECT_EQ(static_cast<int>(copied.size()), panel.units());
    }
  }
}

// Eight threads' copies at a time.
TEST(WmmaPanels, CopiesHaveNoBankConflicts) {
  for (const Config& config : Configs()) {
    for (const Panel& panel : {config.panel_a(), config.panel_b()}) {
      const int copying = std::min(config.threads(), panel.units());
      for (int first = 0; first < copying; first += kLineUnits) {
        std::vector<int> offsets;
        for (int thread = first; thread < first + kLineUnits; ++thread) {
          const UnitPlace place = CopiedUnit(panel, thread);
          offsets.push_back(panel.Offset(place.row, place.column));
        }
        EXPECT_EQ(BankConflicts(offsets, kUnitBytes), 0) << panel.rows << " x " << panel.columns;
      }
    }
  }
}

// f16 fragments are read as matrices of eight rows of a unit.
TEST(WmmaPanels, PaddingLeavesNoBankConflictInF16Reads) {
  int read = 0, without_padding = 0;
  for (const Config& config : Configs()) {
    if (config.type != DType::kF16) continue;
    for (const Panel& panel : {config.panel_a(), config.panel_b()}) {
      for (int row = 0; row < panel.rows; row += 8) {
        for (int column = 0; column < panel.columns; column += panel.unit_elements()) {
          std::vector<int> offsets;
          for (int r = 0; r < 8; ++r) offsets.push_back(panel.Offset(row + r, column));
          const int passes = BankConflicts(offsets, kUnitBytes);
          if (config.padded) {
            EXPECT_EQ(passes, 0) << panel.rows << " x " << panel.columns;
            ++read;
          } else {
            without_padding += passes;
          }
        }
      }
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_GT(without_padding, 0);
}

// f32 fragments by elements: a lane has row lane / 4 of A and column lane % 4,
// and the other way round of B.
TEST(WmmaPanels, PaddingLeavesNoBankConflictInF32Reads) {
  for (const Config& config : Tf32Table::kConfigs) {
    std::vector<int> a, b;
    for (int lane = 0; lane < 32; ++lane) {
      a.push_back(config.panel_a().Offset(lane / 4, lane % 4));
      b.push_back(config.panel_b().Offset(lane % 4, lane / 4));
    }
    EXPECT_EQ(BankConflicts(a, 4), 0);
    EXPECT_EQ(BankConflicts(b, 4), 0);
  }
}

// Lanes store pairs of accumulators, four lanes to a row.
TEST(WmmaPanels, StoringAccumulatorsHasNoBankConflicts) {
  for (const Config& config : Configs()) {
    const Panel strip = config.strip();
    std::vector<int> offsets;
    for (int lane = 0; lane < 32; ++lane) offsets.push_back(strip.Offset(lane / 4, lane % 4 * 2));
    EXPECT_EQ(BankConflicts(offsets, 2 * strip.element_bytes), 0) << strip.columns;
  }
}

}  // namespace
}  // namespace gemm::wmma
