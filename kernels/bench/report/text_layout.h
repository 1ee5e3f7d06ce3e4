// Text and tables that fit a terminal.
#pragma once

#include <cstddef>
#include <ostream>
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
  size_t least = 0;    // that it can be wrapped to; else `widest`
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

// The width of the terminal `fd`, but at least 40. If `fd` is no terminal: COLUMNS in the
// environment, else 0.
size_t TerminalWidth(int fd);

// Each column is as wide as its widest cell. The first column is aligned left, the
// last is free text, the others are aligned right.
class TextTable {
 public:
  struct Column {
    std::string title;
    // Above 0: left out where the table is too wide, the highest first.
    int expendable = 0;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as columns.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // A line across with a title in it.
  void Separate(std::string title) { rows_.push_back({std::move(title)}); }

  // On lines of at most `width` places; 0: no bound. Empty columns are left out.
  void Print(std::ostream& out, size_t width = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A line of dashes with `title`, if any, in the middle.
std::string Rule(const std::string& title, size_t width);

}  // namespace gemm::bench
