#include "kernels/bench/report/text_layout.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gemm::bench {
namespace {

constexpr size_t kLeastTerminal = 40;
constexpr size_t kMostTerminal = 10000;

bool ContinuesCodePoint(char c) { return (static_cast<unsigned char>(c) >> 6) == 2; }

// Bytes of the first `places` code points.
size_t BytesOf(absl::string_view text, size_t places) {
  size_t bytes = 0;
  for (; bytes < text.size(); ++bytes) {
    if (ContinuesCodePoint(text[bytes])) continue;
    if (places-- == 0) break;
  }
  return bytes;
}

// The bytes of a text of more than `room` bytes that go on the line.
size_t BreakAt(absl::string_view text, size_t room) {
  const size_t space = text.substr(0, room + 1).rfind(' ');
  if (space != text.npos && space > 0) return space;
  const size_t mark = text.substr(0, room).find_last_of("_/,;:|=-");
  if (mark != text.npos && mark >= room / 2) return mark + 1;
  return room;
}

size_t Total(const std::vector<size_t>& widths, size_t gap) {
  size_t total = 0;
  for (const size_t width : widths) total += width == 0 ? 0 : width + gap;
  return total < gap ? 0 : total - gap;
}

// Narrows the widest column that can be narrowed, place by place.
void Narrow(absl::Span<const ColumnNeed> columns, size_t gap, size_t width,
            std::vector<size_t>& widths) {
  for (size_t total = Total(widths, gap); total > width; --total) {
    size_t widest = columns.size();
    for (size_t i = 0; i < columns.size(); ++i) {
      if (widths[i] == 0 || widths[i] <= columns[i].least) continue;
      if (widest == columns.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == columns.size()) return;
    --widths[widest];
  }
}

constexpr size_t kGap = 2;
// The narrowest that the free text and the first column are wrapped to. Names keep enough of the
// line that few are wrapped.
constexpr size_t kLeastNote = 16;
size_t LeastName(size_t width) { return width * 3 / 5; }

}  // namespace

size_t TextWidth(absl::string_view text) {
  return text.size() -
         static_cast<size_t>(std::count_if(text.begin(), text.end(), ContinuesCodePoint));
}

std::vector<std::string> WrapText(absl::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (width > 0 && TextWidth(text) > width) {
    const size_t bytes = BreakAt(text, BytesOf(text, width));
    lines.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  if (!text.empty() || lines.empty()) lines.emplace_back(text);
  return lines;
}

std::vector<size_t> FitColumns(absl::Span<const ColumnNeed> columns, size_t gap, size_t width) {
  std::vector<bool> kept(columns.size(), true);
  while (true) {
    std::vector<size_t> widths;
    for (size_t i = 0; i < columns.size(); ++i) widths.push_back(kept[i] ? columns[i].widest : 0);
    if (width == 0) return widths;
    Narrow(columns, gap, width, widths);
    size_t drop = columns.size();
    for (size_t i = 0; i < columns.size(); ++i) {
      if (!kept[i] || columns[i].expendable == 0) continue;
      if (drop == columns.size() || columns[i].expendable > columns[drop].expendable) drop = i;
    }
    if (Total(widths, gap) <= width || drop == columns.size()) return widths;
    kept[drop] = false;
  }
}

std::string LayOutRow(absl::Span<const std::string> cells, absl::Span<const size_t> widths,
                      const std::vector<bool>& right, size_t gap) {
  std::vector<std::vector<std::string>> columns;
  size_t height = 1;
  for (size_t i = 0; i < cells.size(); ++i) {
    columns.push_back(WrapText(cells[i], widths[i]));
    if (widths[i] > 0) height = std::max(height, columns.back().size());
  }
  std::string text;
  for (size_t y = 0; y < height; ++y) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::string piece = y < columns[i].size() ? columns[i][y] : "";
      const std::string padding(widths[i] - std::min(widths[i], TextWidth(piece)), ' ');
      absl::StrAppend(&line, right[i] ? padding : piece, right[i] ? piece : padding,
                      std::string(gap, ' '));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

size_t TerminalWidth(int fd) {
  winsize size = {};
  size_t width = 0;
  if (isatty(fd) == 1 && ioctl(fd, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  const char* const columns = std::getenv("COLUMNS");
  int told = 0;
  if (width == 0 && columns != nullptr && absl::SimpleAtoi(columns, &told) && told > 0) {
    width = static_cast<size_t>(told);
  }
  return width == 0 ? 0 : std::clamp(width, kLeastTerminal, kMostTerminal);
}

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
