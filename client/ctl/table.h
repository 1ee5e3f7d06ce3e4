// Tables for people.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace gemmd::ctl {

enum class Align { kLeft, kRight };

// Rows under a heading, each column as wide as its widest cell, two spaces
// between columns, no space at the end of a line.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  // With every title empty no heading is printed.
  explicit Table(std::vector<Column> columns);

  // A row has a cell a column; cells left out are empty.
  void Add(std::vector<std::string> cells);

  void Print(std::ostream& out) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Two columns without a heading: what, and its value.
Table Facts();

}  // namespace gemmd::ctl
