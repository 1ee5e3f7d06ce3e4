#include "kernels/bench/text_table.h"

#include <algorithm>

namespace gemm::bench {

std::string Rule(const std::string& title, size_t width) {
  const size_t dashes = width > title.size() ? width - title.size() : 0;
  return std::string(dashes / 2, '-') + title + std::string(dashes - dashes / 2, '-');
}

void TextTable::Print(std::ostream& out) const {
  const size_t columns = rows_.front().size();
  std::vector<size_t> widths(columns, 0);
  for (const auto& row : rows_) {
    if (row.size() != columns) continue;
    for (size_t i = 0; i + 1 < columns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  size_t width = 0;
  for (const size_t w : widths) width += w + 2;
  for (const auto& row : rows_) {
    if (row.size() != columns) {
      out << Rule(row.front(), width) << '\n';
      continue;
    }
    std::string line;
    for (size_t i = 0; i < columns; ++i) {
      const std::string padding(i + 1 < columns ? widths[i] - row[i].size() : 0, ' ');
      line += i == 0 ? row[i] + padding : padding + row[i];
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

}  // namespace gemm::bench
