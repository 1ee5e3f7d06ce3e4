#include "kernels/bench/report/report_table.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/bench/report/text_layout.h"
#include "kernels/bench/report/text_table.h"
#include "kernels/bench/spec/types_pattern.h"

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

// Where values begin, behind their labels.
constexpr size_t kLabel = 19;

constexpr size_t kRule = 120;
size_t RuleWidth(size_t width) { return width == 0 ? kRule : std::min(width, kRule); }

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

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
  const std::string of_vendor = absl::StrCat("of ", vendor);
  out << '\n' << Rule(" geometric means, kernel by kernel ", RuleWidth(width)) << '\n';
  TextTable kernels({{"kernel"},
                     {"types", 2},
                     {"layout", 5},
                     {"parameters", 3},
                     {"TFLOPS"},
                     {of_vendor, 1},
                     {"of Lt best", 6},
                     {"joules"},
                     {kOfBaseline, 1},
                     {"of bound", 7},
                     {"shapes", 4},
                     {""}});
  const std::vector<KernelMeans> all = SummariseKernels(rows);
  for (const KernelMeans& means : all) {
    kernels.Add({means.kernel, TypesName(means.types), std::string(LayoutName(means.layout)),
                 OrDash(means.params), TflopsText(means.tflops), RatioText(means.of_vendor),
                 RatioText(means.of_tuned_vendor),
                 IfAnyHas<KernelMeans>(all, means, &KernelMeans::joules, JoulesText),
                 IfAnyHas<KernelMeans>(all, means, &KernelMeans::joules_of_baseline, Ratio),
                 absl::StrFormat("%.3f", means.worst_of_bound),
                 absl::StrCat(means.shapes, "/", means.shapes + means.missing), ""});
  }
  kernels.Print(out, width);

  out << '\n' << Rule(" geometric means, the best of each family ", RuleWidth(width)) << '\n';
  // First the means of the best row, then those of the fastest row of each shape.
  TextTable families({{"family"},
                      {"types", 2},
                      {"layout", 4},
                      {"best row"},
                      {"TFLOPS"},
                      {of_vendor, 1},
                      {"of Lt best", 7},
                      {"shapes", 3},
                      {"best of each shape: TFLOPS", 5},
                      {of_vendor, 6},
                      {"of Lt best", 8},
                      {""}});
  for (const FamilyMeans& family : SummariseFamilies(rows)) {
    const KernelMeans& best = family.best;
    families.Add({best.family, TypesName(best.types), std::string(LayoutName(best.layout)),
                  best.kernel, TflopsText(best.tflops), RatioText(best.of_vendor),
                  RatioText(best.of_tuned_vendor),
                  absl::StrCat(best.shapes, "/", best.shapes + best.missing),
                  TflopsText(family.per_shape_tflops), RatioText(family.per_shape_of_vendor),
                  RatioText(family.per_shape_of_tuned_vendor), ""});
  }
  families.Print(out, width);
}

}  // namespace gemm::bench
