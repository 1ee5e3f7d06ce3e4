#include "kernels/bench/report/text_table.h"

#include <algorithm>

#include "kernels/bench/report/text_layout.h"

namespace gemm::bench {
namespace {

constexpr size_t kGap = 2;
// What the first column and the free text can be wrapped to. Of a name so much of
// the line has to be left that few are wrapped.
constexpr size_t kLeastNote = 16;
size_t LeastName(size_t width) { return width * 3 / 5; }

}  // namespace

std::string Rule(const std::string& title, size_t width) {
  const size_t dashes = width > title.size() ? width - title.size() : 0;
  return std::string(dashes / 2, '-') + title + std::string(dashes - dashes / 2, '-');
}

void TextTable::Print(std::ostream& out, size_t width) const {
  std::vector<std::string> titles;
  std::vector<ColumnNeed> needs;
  std::vector<bool> right;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const bool first = i == 0, last = i + 1 == columns_.size();
    titles.push_back(columns_[i].title);
    size_t widest = 0;
    for (const auto& row : rows_) {
      if (row.size() == columns_.size()) widest = std::max(widest, TextWidth(row[i]));
    }
    const size_t title = TextWidth(titles[i]);
    if (widest > 0) widest = std::max(widest, title);
    const size_t least = first  ? std::max(title, LeastName(width))
                         : last ? std::max(title, kLeastNote)
                                : widest;
    needs.push_back({widest, std::min(widest, least), columns_[i].expendable});
    right.push_back(!first && !last);
  }
  const std::vector<size_t> widths = FitColumns(needs, kGap, width);
  size_t whole = 0;
  for (const size_t column : widths) whole += column == 0 ? 0 : column + kGap;
  out << LayOutRow(titles, widths, right, kGap);
  for (const auto& row : rows_) {
    if (row.size() == columns_.size()) {
      out << LayOutRow(row, widths, right, kGap);
    } else {
      out << Rule(row.front(), width == 0 ? whole : std::min(whole, width)) << '\n';
    }
  }
}

}  // namespace gemm::bench
