// The layout of a k-tile in shared memory, as WMMA can load and store it.
#pragma once

#include "kernels/numeric/host_device.h"

namespace gemm::wmma {

// One thread's copy. Shared memory delivers eight of them at a time.
inline constexpr int kUnitBytes = 16;
inline constexpr int kLineUnits = 8;  // as many as the banks serve at once

// The alignment that WMMA requires of fragments (CUDA C++ Programming Guide, "Warp Matrix
// Functions"). Rows must be whole units apart.
inline constexpr int kFragmentAlignment = 32;

// Rows of `columns` elements. The columns of each fragment begin at kFragmentAlignment:
// narrower fragments have gaps between them.
struct Panel {
  int rows;
  int columns;
  int element_bytes;
  int fragment_columns;
  int padding_bytes;  // behind each row, against bank conflicts

  GEMM_HOST_DEVICE constexpr int fragment_pitch() const {
    const int bytes = fragment_columns * element_bytes;
    return bytes < kFragmentAlignment ? kFragmentAlignment : bytes;
  }
  // Bytes from one row to the next.
  GEMM_HOST_DEVICE constexpr int pitch() const {
    return columns / fragment_columns * fragment_pitch() + padding_bytes;
  }
  GEMM_HOST_DEVICE constexpr int bytes() const { return rows * pitch(); }
  // WMMA's leading dimension.
  GEMM_HOST_DEVICE constexpr unsigned ld() const {
    return static_cast<unsigned>(pitch() / element_bytes);
  }

  GEMM_HOST_DEVICE constexpr int unit_elements() const { return kUnitBytes / element_bytes; }
  GEMM_HOST_DEVICE constexpr int row_units() const { return columns / unit_elements(); }
  GEMM_HOST_DEVICE constexpr int units() const { return rows * row_units(); }

  // The byte offset of an element.
  GEMM_HOST_DEVICE constexpr int Offset(int row, int column) const {
    return row * pitch() + column / fragment_columns * fragment_pitch() +
           column % fragment_columns * element_bytes;
  }
};

// A unit of a panel, by its row and its first column.
struct UnitPlace {
  int row;
  int column;
};

// The units that eight threads copy, whose stores shared memory takes at a time: `width`
// neighbours in each of 8 / width rows that are `row_step` apart. Padded rows are an odd
// number of units apart; the row step then puts the units at different places in the
// line of banks.
struct CopyGroup {
  int width;
  int row_step;

  GEMM_HOST_DEVICE constexpr explicit CopyGroup(const Panel& panel) : width(0), row_step(1) {
    const int unit_step = panel.fragment_pitch() / (panel.fragment_columns * panel.element_bytes);
    const int most = kLineUnits / unit_step;
    width = panel.row_units() < most ? panel.row_units() : most;
    const bool odd_pitch = panel.pitch() / kUnitBytes % 2 == 1;
    if (odd_pitch && width * unit_step < kLineUnits) row_step = width * unit_step;
  }
  // The rows that a number of groups cover as a whole.
  GEMM_HOST_DEVICE constexpr int rows() const { return row_step * (kLineUnits / width); }
};

// The unit that a thread copies first. Its next ones are in rows further down.
GEMM_HOST_DEVICE constexpr UnitPlace CopiedUnit(const Panel& panel, int thread) {
  const CopyGroup group(panel);
  const int across = panel.row_units() / group.width;  // groups side by side
  const int index = thread / kLineUnits, local = thread % kLineUnits;
  const int row = index / across / group.row_step * group.rows() + index / across % group.row_step +
                  local / group.width * group.row_step;
  const int unit = index % across * group.width + local % group.width;
  return {row, unit * panel.unit_elements()};
}

}  // namespace gemm::wmma
