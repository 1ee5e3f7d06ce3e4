// The layout of an operand's k-tile in shared memory. The unit is 16 bytes: one thread's
// copy, and one row of ldmatrix.
#pragma once

#include "kernels/numeric/host_device.h"

namespace gemm::mma {

// How bank conflicts are avoided. Shared memory serves eight units at a time if their
// places within a line of eight units differ.
enum class PanelLayout {
  // Rows are an odd number of units apart, so that the same unit of eight rows has eight
  // places. Copies of rows shorter than a line may still conflict.
  kPadded,
  // Rows are dense, and the index of a unit is XORed with that of its line. The same
  // holds then for rows of 1, 2, 4 and multiples of 8 units.
  kXor,
};

inline constexpr int kUnitBytes = 16;
inline constexpr int kUnitElements = 8;  // of f16
inline constexpr int kLineUnits = 8;     // as many as the banks serve at once

// A panel of `rows` rows of `units` units.
struct SharedPanel {
  int rows;
  int units;
  PanelLayout layout;

  // Units from one row to the next.
  GEMM_HOST_DEVICE constexpr int pitch() const {
    return layout == PanelLayout::kPadded ? units | 1 : units;
  }
  GEMM_HOST_DEVICE constexpr int bytes() const { return rows * pitch() * kUnitBytes; }

  // The byte offset of a unit. 16 rows further on it is 16 pitches more.
  GEMM_HOST_DEVICE constexpr int Offset(int row, int unit) const {
    if (layout == PanelLayout::kXor) {
      const int rows_of_line = units < kLineUnits ? kLineUnits / units : 1;
      const int places = units < kLineUnits ? units : kLineUnits;
      unit ^= row / rows_of_line % places;
    }
    return (row * pitch() + unit) * kUnitBytes;
  }
};

// A unit of a panel.
struct PanelUnit {
  int row;
  int unit;
};

// The unit that a thread copies first. Its next ones are `threads` units further on.
GEMM_HOST_DEVICE constexpr PanelUnit CopiedUnit(const SharedPanel& panel, int thread) {
  return {thread / panel.units, thread % panel.units};
}

// The order of the four 8 x 8 matrices of an ldmatrix in a block of 16 rows by 2 units:
// the two of one unit first, or the two of eight rows first.
enum class BlockOrder { kUnitMajor, kRowMajor };

// The row and unit of the block that a lane addresses.
GEMM_HOST_DEVICE constexpr PanelUnit LaneUnit(BlockOrder order, int lane) {
  return order == BlockOrder::kUnitMajor ? PanelUnit{lane % 16, lane / 16}
                                         : PanelUnit{lane / 16 * 8 + lane % 8, lane / 8 % 2};
}

}  // namespace gemm::mma
