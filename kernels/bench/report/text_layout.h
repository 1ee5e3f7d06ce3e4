// Text that fits a terminal: widths of columns, and cells on several lines.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gemm::bench {

// A width of 0 means no bound, everywhere in this file.

// The places that a text takes: its code points.
size_t TextWidth(absl::string_view text);

// The text on lines of at most `width` places, broken at spaces, else behind
// punctuation, else anywhere. At least one line.
std::vector<std::string> WrapText(absl::string_view text, size_t width);

// The places that a column needs in a line.
struct ColumnNeed {
  size_t widest = 0;   // its widest cell or its title
  size_t least = 0;    // that it can be wrapped to; `widest` where it cannot be
  int expendable = 0;  // above 0: it may be left out, the highest first
};

// Widths of columns that are `gap` places apart and together take at most `width`. Cells
// are wrapped first; then columns are left out, with a width of 0. The columns may still
// be too wide where none can be left out.
std::vector<size_t> FitColumns(absl::Span<const ColumnNeed> columns, size_t gap, size_t width);

// One row, with a cell for each column. Columns of width 0 are left out, wider cells are
// wrapped, and `right` says which columns are aligned right. Lines have no trailing spaces
// and end with a newline.
std::string LayOutRow(absl::Span<const std::string> cells, absl::Span<const size_t> widths,
                      const std::vector<bool>& right, size_t gap);

// The width of the terminal `fd`, but at least 40. Where `fd` is no terminal: COLUMNS in
// the environment, else 0.
size_t TerminalWidth(int fd);

}  // namespace gemm::bench
