// Columns of text.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace gemm::bench {

// Every column as wide as its widest cell, the first to the left, the others to
// the right, but for the last, which is free text.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> titles) : rows_{std::move(titles)} {}

  // As many cells as titles.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // A line across with a title in it.
  void Separate(std::string title) { rows_.push_back({std::move(title)}); }

  void Print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// A line of dashes with `title`, where it has one, in the middle.
std::string Rule(const std::string& title, size_t width);

}  // namespace gemm::bench
