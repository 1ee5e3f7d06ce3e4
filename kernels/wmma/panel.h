// Where the elements of a tile lie in shared memory, so that WMMA may load and
// store them.
#pragma once

#include "kernels/numeric/host_device.h"

namespace gemm::wmma {

// What one thread copies, and one row that shared memory delivers at a time.
inline constexpr int kUnitBytes = 16;
inline constexpr int kLineUnits = 8;  // as many as there are banks for

// WMMA takes fragments at such boundaries alone (CUDA C++ Programming Guide,
// "Warp Matrix Functions"), and rows whole units apart.
inline constexpr int kFragmentAlignment = 32;

// Rows of `columns` elements. The columns of each fragment begin at a boundary
// that WMMA takes: fragments that are narrower than that have gaps between them.
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

// How eight threads, whose copies shared memory takes at a time, share out the
// units of a panel: `width` neighbours each of 8 / width rows that are `row_step`
// apart. Where rows lie an odd number of units apart, as padded ones do, that
// row step brings them to different places in the line of banks.
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
  // Rows that a number of groups cover as a whole.
  GEMM_HOST_DEVICE constexpr int rows() const { return row_step * (kLineUnits / width); }
};

// The unit that a thread copies first; the next ones are in rows further down.
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
