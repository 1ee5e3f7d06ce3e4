// Columns of text.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace gemm::bench {

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

// A line of dashes with `title`, where it has one, in the middle.
std::string Rule(const std::string& title, size_t width);

}  // namespace gemm::bench
