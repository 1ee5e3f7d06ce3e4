// Where the elements of an operand's tile lie in shared memory. Everything is
// counted in units of 16 bytes: what one thread copies, and one row of ldmatrix.
#pragma once

#include "kernels/numeric/host_device.h"

namespace gemm::mma {

// How bank conflicts are avoided: shared memory serves eight units at a time,
// if they differ in their place within a line of eight units.
enum class PanelLayout {
  // Rows are an odd number of units apart, so the same unit of eight rows lies
  // at eight places. Copies of rows shorter than a line may still collide.
  kPadded,
  // Rows are dense, and the number of a unit is XORed with that of the line it
  // lies in, so the same holds for rows of 1, 2, 4 and multiples of 8 units.
  kXor,
};

inline constexpr int kUnitBytes = 16;
inline constexpr int kUnitElements = 8;  // of f16
inline constexpr int kLineUnits = 8;     // as many as there are banks for

// A tile of `rows` rows of `units` units.
struct SharedPanel {
  int rows;
  int units;
  PanelLayout layout;

  // Units from one row to the next.
  GEMM_HOST_DEVICE constexpr int pitch() const {
    return layout == PanelLayout::kPadded ? units | 1 : units;
  }
  GEMM_HOST_DEVICE constexpr int bytes() const { return rows * pitch() * kUnitBytes; }

  // The byte offset of a unit. That of a row 16 further on is 16 pitches more.
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

// The unit that a thread copies first; its next ones are `threads` further on.
GEMM_HOST_DEVICE constexpr PanelUnit CopiedUnit(const SharedPanel& panel, int thread) {
  return {thread / panel.units, thread % panel.units};
}

// How the four 8 x 8 matrices of an ldmatrix lie in a block of 16 rows by 2
// units: those of one unit first, or those of eight rows first.
enum class BlockOrder { kUnitMajor, kRowMajor };

// The row of the block that a lane addresses.
GEMM_HOST_DEVICE constexpr PanelUnit LaneUnit(BlockOrder order, int lane) {
  return order == BlockOrder::kUnitMajor ? PanelUnit{lane % 16, lane / 16}
                                         : PanelUnit{lane / 16 * 8 + lane % 8, lane / 8 % 2};
}

}  // namespace gemm::mma
