#include "kernels/bench/report_table.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/bench/text_table.h"
#include "kernels/bench/types_pattern.h"

namespace gemm::bench {
namespace {

std::string RatioText(const std::optional<double>& ratio) {
  return ratio ? absl::StrFormat("%.3f", *ratio) : "-";
}

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

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

void PrintFacts(const Facts& facts, std::ostream& out) {
  for (const auto& [label, value] : facts) out << absl::StrFormat("%-18s %s\n", label, value);
}

void PrintRows(absl::Span<const Row> rows, size_t index, size_t shapes, absl::string_view vendor,
               std::ostream& out) {
  const Row& any = rows.front();
  out << '\n'
      << Rule(absl::StrFormat(" M=%d, N=%d, K=%d  %s  %s  %d/%d ", any.shape.m, any.shape.n,
                              any.shape.k, TypesName(any.types), LayoutName(any.layout), index + 1,
                              shapes),
              120)
      << '\n';
  TextTable table({"kernel", "D[0,0]", "D[M-1,N-1]", "ms", "+-", "parameters", "TFLOPS", "gain",
                   absl::StrCat("of ", vendor), "of Lt best", "of bound", "note"});
  std::string section;
  for (const Row& row : rows) {
    if (const std::string next = row.peer ? "peers" : row.family; next != section) {
      table.Separate(absl::StrCat(" ", next, " "));
      section = next;
    }
    if (!row.measured) {
      table.Add(
          {row.kernel, "-", "-", "-", "", OrDash(row.params), "-", "", "-", "-", "-", row.note});
      continue;
    }
    table.Add({row.kernel, absl::StrFormat("%.6g", row.error.first),
               absl::StrFormat("%.6g", row.error.last), absl::StrFormat("%.6f", row.seconds * 1e3),
               SpreadText(row), OrDash(row.params), TflopsText(row.tflops), GainText(row.gain),
               RatioText(row.of_vendor), RatioText(row.of_tuned_vendor), ErrorText(row), row.note});
  }
  table.Print(out);
}

void PrintSummary(absl::Span<const Row> rows, absl::string_view vendor, std::ostream& out) {
  const std::string of_vendor = absl::StrCat("of ", vendor);
  out << '\n' << Rule(" geometric means, kernel by kernel ", 120) << '\n';
  TextTable kernels({"kernel", "types", "layout", "parameters", "TFLOPS", of_vendor, "of Lt best",
                     "of bound", "shapes", ""});
  for (const KernelMeans& means : SummariseKernels(rows)) {
    kernels.Add({means.kernel, TypesName(means.types), std::string(LayoutName(means.layout)),
                 OrDash(means.params), TflopsText(means.tflops), RatioText(means.of_vendor),
                 RatioText(means.of_tuned_vendor), absl::StrFormat("%.3f", means.worst_of_bound),
                 absl::StrCat(means.shapes, "/", means.shapes + means.missing), ""});
  }
  kernels.Print(out);

  out << '\n' << Rule(" geometric means, the best of each family ", 120) << '\n';
  TextTable families({"family", "types", "layout", "best row", "TFLOPS", of_vendor, "of Lt best",
                      "shapes", "best of each shape: TFLOPS", of_vendor, "of Lt best", ""});
  for (const FamilyMeans& family : SummariseFamilies(rows)) {
    const KernelMeans& best = family.best;
    families.Add({best.family, TypesName(best.types), std::string(LayoutName(best.layout)),
                  best.kernel, TflopsText(best.tflops), RatioText(best.of_vendor),
                  RatioText(best.of_tuned_vendor),
                  absl::StrCat(best.shapes, "/", best.shapes + best.missing),
                  TflopsText(family.per_shape_tflops), RatioText(family.per_shape_of_vendor),
                  RatioText(family.per_shape_of_tuned_vendor), ""});
  }
  families.Print(out);
}

}  // namespace gemm::bench
