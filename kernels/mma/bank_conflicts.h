// Counts the bank conflicts of a panel's accesses.
#pragma once

#include "kernels/mma/shared_panel.h"

namespace gemm::mma {

// The passes beyond the first that eight units of 16 bytes take. Units in the same place
// of a 128-byte line conflict: each needs a pass of its own.
constexpr int ExtraPasses(const int (&offsets)[kLineUnits]) {
  int at_place[kLineUnits] = {};
  int passes = 0;
  for (const int offset : offsets) {
    const int count = ++at_place[offset / kUnitBytes % kLineUnits];
    if (count > passes) passes = count;
  }
  return passes - 1;
}

// Extra passes of the ldmatrix of one block of 16 rows by 2 units, over its
// four matrices of eight rows each.
constexpr int ReadConflicts(const SharedPanel& panel, BlockOrder order, int first_row,
                            int first_unit) {
  int conflicts = 0;
  for (int matrix = 0; matrix < 4; ++matrix) {
    int offsets[kLineUnits] = {};
    for (int row = 0; row < kLineUnits; ++row) {
      const PanelUnit place = LaneUnit(order, matrix * kLineUnits + row);
      offsets[row] = panel.Offset(first_row + place.row, first_unit + place.unit);
    }
    conflicts += ExtraPasses(offsets);
  }
  return conflicts;
}

// Extra passes of the ldmatrix of all blocks of a panel.
constexpr int ReadConflicts(const SharedPanel& panel, BlockOrder order) {
  int conflicts = 0;
  for (int row = 0; row < panel.rows; row += 16) {
    for (int unit = 0; unit + 1 < panel.units; unit += 2) {
      conflicts += ReadConflicts(panel, order, row, unit);
    }
  }
  return conflicts;
}

// Extra passes of the copies that fill a panel, eight threads' at a time.
constexpr int CopyConflicts(const SharedPanel& panel) {
  int conflicts = 0;
  for (int first = 0; first < panel.rows * panel.units; first += kLineUnits) {
    int offsets[kLineUnits] = {};
    for (int x = 0; x < kLineUnits; ++x) {
      const PanelUnit place = CopiedUnit(panel, first + x);
      offsets[x] = panel.Offset(place.row, place.unit);
    }
    conflicts += ExtraPasses(offsets);
  }
  return conflicts;
}

}  // namespace gemm::mma
