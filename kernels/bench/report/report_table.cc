#include "kernels/bench/report/report_table.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/bench/report/text_layout.h"
#include "kernels/bench/result/auto_share.h"
#include "kernels/bench/spec/selection.h"

namespace gemm::bench {
namespace {

std::string Ratio(double ratio) { return absl::StrFormat("%.3f", ratio); }

std::string RatioText(const std::optional<double>& ratio) { return ratio ? Ratio(*ratio) : "-"; }

// Empty where nothing has the figure: the table then leaves the column out.
template <class Figures, class Text>
std::string IfAnyHas(absl::Span<const Figures> all, const Figures& one,
                     std::optional<double> Figures::*figure, Text text) {
  if (one.*figure) return text(*(one.*figure));
  const bool any = std::any_of(all.begin(), all.end(),
                               [figure](const Figures& x) { return (x.*figure).has_value(); });
  return any ? "-" : "";
}

std::string JoulesText(double joules) { return absl::StrFormat("%.4g", joules); }

std::string TflopsText(double tflops) {
  return tflops < 0.1 ? absl::StrFormat("%.3g", tflops) : absl::StrFormat("%.2f", tflops);
}

// "+4.8%"; nothing where the row is not the best so far.
std::string GainText(const std::optional<double>& gain) {
  return gain ? absl::StrFormat("+%.2f%%", *gain * 100) : "";
}

// Half of what lies between the fastest and the slowest sample.
std::string SpreadText(const Row& row) {
  const double spread = (row.slowest_seconds - row.fastest_seconds) / 2 / row.seconds;
  return row.iterations < 2 ? "" : absl::StrFormat("%.1f%%", spread * 100);
}

std::string ErrorText(const Row& row) {
  return absl::StrCat(absl::StrFormat("%.3f", row.error.of_bound), row.right() ? "" : " WRONG");
}

// Joules as a share of those of the baseline that has the fewest.
constexpr const char* kOfBaseline = "J of baseline";

// The column where values begin, after their labels.
constexpr size_t kLabel = 19;

constexpr size_t kRule = 120;
size_t RuleWidth(size_t width) { return width == 0 ? kRule : std::min(width, kRule); }

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string BelowTitle(double share = kLostShare) { return absl::StrCat("<", share); }

// The columns of each baseline: the geometric mean, the ratio of summed times, and the shapes below
// kLostShare. A baseline that no kernel was compared with has empty columns, which are left out.
class BaselineColumns {
 public:
  BaselineColumns(absl::string_view vendor, const std::vector<KernelMeans>& all)
      : vendor_title_(absl::StrCat("of ", vendor)) {
    for (const KernelMeans& means : all) {
      vendor_ = vendor_ || means.of_vendor.has_value();
      tuned_ = tuned_ || means.of_tuned_vendor.has_value();
    }
  }

  bool any() const { return vendor_ || tuned_; }
  void AddTitles(std::vector<TextTable::Column>& columns) const {
    columns.insert(columns.end(), {{vendor_title_, 1}, {"by time", 2}, {BelowTitle(), 3}});
    columns.insert(columns.end(), {{"of Lt best", 9}, {"by time", 10}, {BelowTitle(), 11}});
  }
  void AddCells(const std::optional<OfBaseline>& vendor, const std::optional<OfBaseline>& tuned,
                std::vector<std::string>& cells) const {
    AddCells(vendor, vendor_ ? "-" : "", cells);
    AddCells(tuned, tuned_ ? "-" : "", cells);
  }

 private:
  static void AddCells(const std::optional<OfBaseline>& of, const char* missing,
                       std::vector<std::string>& cells) {
    cells.push_back(of ? Ratio(of->mean) : missing);
    cells.push_back(of ? Ratio(of->by_time) : missing);
    cells.push_back(of ? absl::StrCat(of->lost, "/", of->shapes) : missing);
  }

  const std::string vendor_title_;
  bool vendor_ = false, tuned_ = false;
};

std::string ShapesText(const KernelMeans& means) {
  return absl::StrCat(means.shapes, "/", means.shapes + means.missing);
}

void PrintTitle(absl::string_view title, std::ostream& out, size_t width) {
  out << '\n' << Rule(absl::StrCat(" ", title, " "), RuleWidth(width)) << '\n';
}

void PrintKernels(const std::vector<KernelMeans>& all, const BaselineColumns& baselines,
                  std::ostream& out, size_t width) {
  PrintTitle("geometric means, kernel by kernel", out, width);
  std::vector<TextTable::Column> columns = {
      {"kernel"}, {"types", 5}, {"layout", 8}, {"parameters", 6}, {"TFLOPS"}};
  baselines.AddTitles(columns);
  columns.insert(columns.end(),
                 {{"joules"}, {kOfBaseline, 4}, {"of bound", 12}, {"shapes", 7}, {""}});
  TextTable table(std::move(columns));
  for (const KernelMeans& means : all) {
    std::vector<std::string> cells = {means.kernel, TypesName(means.types),
                                      std::string(LayoutName(means.layout)), OrDash(means.params),
                                      TflopsText(means.tflops)};
    baselines.AddCells(means.of_vendor, means.of_tuned_vendor, cells);
    cells.insert(cells.end(),
                 {IfAnyHas<KernelMeans>(all, means, &KernelMeans::joules, JoulesText),
                  IfAnyHas<KernelMeans>(all, means, &KernelMeans::joules_of_baseline, Ratio),
                  absl::StrFormat("%.3f", means.worst_of_bound), ShapesText(means), ""});
    table.Add(std::move(cells));
  }
  table.Print(out, width);
}

void PrintBestRows(const std::vector<FamilyMeans>& families, const BaselineColumns& baselines,
                   std::ostream& out, size_t width) {
  PrintTitle("geometric means, the best row of each family", out, width);
  std::vector<TextTable::Column> columns = {
      {"family"}, {"types", 5}, {"layout", 7}, {"best row"}, {"TFLOPS"}};
  baselines.AddTitles(columns);
  columns.insert(columns.end(), {{"shapes", 6}, {""}});
  TextTable table(std::move(columns));
  for (const FamilyMeans& family : families) {
    const KernelMeans& best = family.best;
    std::vector<std::string> cells = {best.family, TypesName(best.types),
                                      std::string(LayoutName(best.layout)), best.kernel,
                                      TflopsText(best.tflops)};
    baselines.AddCells(best.of_vendor, best.of_tuned_vendor, cells);
    cells.insert(cells.end(), {ShapesText(best), ""});
    table.Add(std::move(cells));
  }
  table.Print(out, width);
}

void PrintBestOfEachShape(const std::vector<FamilyMeans>& families,
                          const BaselineColumns& baselines, std::ostream& out, size_t width) {
  PrintTitle("geometric means, each family's fastest row of each shape", out, width);
  std::vector<TextTable::Column> columns = {{"family"}, {"types", 5}, {"layout", 7}, {"TFLOPS"}};
  baselines.AddTitles(columns);
  columns.push_back({""});
  TextTable table(std::move(columns));
  for (const FamilyMeans& family : families) {
    std::vector<std::string> cells = {family.best.family, TypesName(family.best.types),
                                      std::string(LayoutName(family.best.layout)),
                                      TflopsText(family.per_shape_tflops)};
    baselines.AddCells(family.per_shape_of_vendor, family.per_shape_of_tuned_vendor, cells);
    cells.emplace_back();
    table.Add(std::move(cells));
  }
  table.Print(out, width);
}

void PrintAuto(const std::vector<AutoShare>& all, std::ostream& out, size_t width) {
  if (all.empty()) return;
  PrintTitle("auto beside the fastest row of each shape", out, width);
  TextTable table({{"types"},
                   {"layout"},
                   {"shapes", 3},
                   {"of best"},
                   {"by time", 1},
                   {BelowTitle(kLowShare), 2},
                   {"worst"},
                   {"at", 4},
                   {"auto", 5},
                   {"fastest", 6},
                   {""}});
  for (const AutoShare& share : all) {
    std::vector<std::string> cells = {
        TypesName(share.types),     std::string(LayoutName(share.layout)),
        absl::StrCat(share.shapes), Ratio(share.mean),
        Ratio(share.by_time),       absl::StrCat(share.below)};
    for (const AutoShare::At& at : share.worst) {
      cells.insert(cells.end(), {Ratio(at.share), ShapeName(at.shape), at.took, at.best, ""});
      table.Add(std::exchange(cells, std::vector<std::string>(6)));
    }
  }
  table.Print(out, width);
}

}  // namespace

void PrintMetadata(const Metadata& metadata, std::ostream& out, size_t width) {
  const size_t room = width > kLabel ? width - kLabel : 0;
  for (const auto& [label, value] : metadata) {
    std::string shown = label;
    for (const std::string& line : WrapText(value, room)) {
      out << absl::StrFormat("%-18s %s\n", std::exchange(shown, ""), line);
    }
  }
}

void PrintRows(absl::Span<const Row> rows, size_t index, size_t shapes, absl::string_view vendor,
               std::ostream& out, size_t width) {
  const Row& any = rows.front();
  out << '\n'
      << Rule(absl::StrFormat(" M=%d, N=%d, K=%d  %s  %s  %d/%d ", any.shape.m, any.shape.n,
                              any.shape.k, TypesName(any.types), LayoutName(any.layout), index + 1,
                              shapes),
              RuleWidth(width))
      << '\n';
  TextTable table({{"kernel"},
                   {"D[0,0]", 8},
                   {"D[M-1,N-1]", 9},
                   {"ms", 3},
                   {"+-", 7},
                   {"parameters", 2},
                   {"TFLOPS"},
                   {"gain", 5},
                   {absl::StrCat("of ", vendor), 1},
                   {"of Lt best", 6},
                   {"joules"},
                   {kOfBaseline, 1},
                   {"of bound"},
                   {"note", 4}});
  std::string section;
  for (const Row& row : rows) {
    if (const std::string next = row.baseline ? "baselines" : row.family; next != section) {
      table.Separate(absl::StrCat(" ", next, " "));
      section = next;
    }
    const std::string joules = IfAnyHas(rows, row, &Row::joules, JoulesText);
    const std::string of_baseline = IfAnyHas(rows, row, &Row::joules_of_baseline, Ratio);
    if (!row.measured) {
      table.Add({row.kernel, "-", "-", "-", "", OrDash(row.params), "-", "", "-", "-", joules,
                 of_baseline, "-", row.note});
      continue;
    }
    table.Add({row.kernel, absl::StrFormat("%.6g", row.error.first),
               absl::StrFormat("%.6g", row.error.last), absl::StrFormat("%.6f", row.seconds * 1e3),
               SpreadText(row), OrDash(row.params), TflopsText(row.tflops), GainText(row.gain),
               RatioText(row.of_vendor), RatioText(row.of_tuned_vendor), joules, of_baseline,
               ErrorText(row), row.note});
  }
  table.Print(out, width);
}

void PrintSummary(absl::Span<const Row> rows, absl::string_view vendor, std::ostream& out,
                  size_t width) {
  const std::vector<KernelMeans> kernels = SummariseKernels(rows);
  const std::vector<FamilyMeans> families = SummariseFamilies(rows);
  const BaselineColumns baselines(vendor, kernels);
  PrintKernels(kernels, baselines, out, width);
  PrintBestRows(families, baselines, out, width);
  PrintBestOfEachShape(families, baselines, out, width);
  PrintAuto(SummariseAuto(rows), out, width);
  if (!baselines.any()) return;
  const std::string legend =
      absl::StrCat("by time: the baseline's times, summed, over the kernel's; ", BelowTitle(),
                   ": shapes with a smaller share");
  out << '\n';
  for (const std::string& line : WrapText(legend, width)) out << line << '\n';
}

}  // namespace gemm::bench
