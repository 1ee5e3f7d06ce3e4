#include "client/ctl/table.h"

#include <algorithm>

namespace gemmd::ctl {
namespace {

// Code points, which is how many places a cell of ours takes: a byte that
// continues a UTF-8 sequence takes none.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::Add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::Print(std::ostream& out) const {
  std::vector<std::string> titles;
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(columns_[i].title);
    size_t width = Width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, Width(row[i]));
    widths.push_back(width);
  }
  const auto print_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - Width(row[i]), ' ');
      if (i > 0) line += "  ";
      line += columns_[i].align == Align::kRight ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  };
  if (std::any_of(titles.begin(), titles.end(), [](const auto& t) { return !t.empty(); })) {
    print_row(titles);
  }
  for (const auto& row : rows_) print_row(row);
}

Table Facts() { return Table({{""}, {""}}); }

}  // namespace gemmd::ctl
