// Tables for people.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace gemmd::ctl {

enum class Align { kLeft, kRight };

// What becomes of a column if the table is too wide.
enum class Fit {
  kKeep,  // nothing
  kWrap,  // its cells go on below
  kDrop,  // it is left out, the last of several first
};

// Rows under a heading. Each column is as wide as its widest cell, with two spaces
// between columns and no space at the end of a line.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    Fit fit = Fit::kKeep;
  };

  // With every title empty no heading is printed.
  explicit Table(std::vector<Column> columns);

  // Adds a row, with one cell for each column; missing cells are empty.
  void Add(std::vector<std::string> cells);

  // Prints lines of at most `width` columns; 0: no bound.
  void Print(std::ostream& out, size_t width = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Two columns without a heading: a label, and its value, which is wrapped.
Table SummaryTable();

}  // namespace gemmd::ctl
