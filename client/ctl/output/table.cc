#include "client/ctl/output/table.h"

#include <algorithm>

#include "gemm/quote.h"
#include "kernels/bench/report/text_layout.h"

namespace gemmd::ctl {
namespace {

constexpr size_t kGap = 2;
// The least width that a column is wrapped to.
constexpr size_t kLeastWrapped = 10;

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::Add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  // Text from a server goes to a terminal here.
  for (std::string& cell : cells) cell = gemm::EscapeControls(cell);
  rows_.push_back(std::move(cells));
}

void Table::Print(std::ostream& out, size_t width) const {
  std::vector<std::string> titles;
  std::vector<gemm::bench::ColumnNeed> needs;
  std::vector<bool> right;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    titles.push_back(column.title);
    right.push_back(column.align == Align::kRight);
    const size_t title = gemm::bench::TextWidth(column.title);
    size_t widest = title;
    for (const auto& row : rows_) widest = std::max(widest, gemm::bench::TextWidth(row[i]));
    const size_t wrapped = std::min(widest, std::max(title, kLeastWrapped));
    needs.push_back({.widest = widest,
                     .least = column.fit == Fit::kWrap ? wrapped : widest,
                     .expendable = column.fit == Fit::kDrop ? static_cast<int>(i) + 1 : 0});
  }
  const std::vector<size_t> widths = gemm::bench::FitColumns(needs, kGap, width);
  if (std::any_of(titles.begin(), titles.end(), [](const auto& t) { return !t.empty(); })) {
    out << gemm::bench::LayOutRow(titles, widths, right, kGap);
  }
  for (const auto& row : rows_) out << gemm::bench::LayOutRow(row, widths, right, kGap);
}

Table SummaryTable() { return Table({{""}, {"", Align::kLeft, Fit::kWrap}}); }

}  // namespace gemmd::ctl
