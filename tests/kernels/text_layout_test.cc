// Text fits the width that it is given.
#include "kernels/bench/report/text_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/bench/report/report_table.h"

namespace gemm::bench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

size_t WidestLine(const std::string& text) {
  size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, TextWidth(line));
  return widest;
}

TEST(TextLayout, WrapsAtSpacesThenMarksThenAnywhere) {
  EXPECT_THAT(WrapText("one two three", 8), ElementsAre("one two", "three"));
  EXPECT_THAT(WrapText("hgemm_mma_stage3_tn", 12), ElementsAre("hgemm_mma_", "stage3_tn"));
  EXPECT_THAT(WrapText("abcdefghij", 4), ElementsAre("abcd", "efgh", "ij"));
  EXPECT_THAT(WrapText("", 4), ElementsAre(""));
  EXPECT_THAT(WrapText("one two three", 0), ElementsAre("one two three"));
  EXPECT_THAT(WrapText("\xc3\xa9\xc3\xa9\xc3\xa9", 2), ElementsAre("\xc3\xa9\xc3\xa9", "\xc3\xa9"));
}

TEST(TextLayout, ColumnsAreWrappedBeforeAnyIsLeftOut) {
  const std::vector<ColumnNeed> columns = {{10, 10, 0}, {30, 12, 0}, {10, 10, 1}, {8, 8, 2}};
  EXPECT_THAT(FitColumns(columns, 2, 0), ElementsAre(10, 30, 10, 8));
  EXPECT_THAT(FitColumns(columns, 2, 64), ElementsAre(10, 30, 10, 8));
  EXPECT_THAT(FitColumns(columns, 2, 50), ElementsAre(10, 16, 10, 8));
  EXPECT_THAT(FitColumns(columns, 2, 40), ElementsAre(10, 16, 10, 0));
  EXPECT_THAT(FitColumns(columns, 2, 25), ElementsAre(10, 13, 0, 0));
  // As far as possible.
  EXPECT_THAT(FitColumns(columns, 2, 5), ElementsAre(10, 12, 0, 0));
}

TEST(TextLayout, ARowGoesOnBelow) {
  const std::vector<std::string> cells = {"name", "left out", "one two three", "7"};
  EXPECT_EQ(LayOutRow(cells, std::vector<size_t>{6, 0, 8, 3}, {false, false, false, true}, 2),
            "name    one two     7\n"
            "        three\n");
}

TEST(TextLayout, AFileIsAsWideAsTheEnvironmentSays) {
  setenv("COLUMNS", "100", 1);
  EXPECT_EQ(TerminalWidth(-1), 100u);
  setenv("COLUMNS", "3", 1);
  EXPECT_EQ(TerminalWidth(-1), 40u);
  for (const char* none : {"", "wide", "-80"}) {
    setenv("COLUMNS", none, 1);
    EXPECT_EQ(TerminalWidth(-1), 0u);
  }
  unsetenv("COLUMNS");
  EXPECT_EQ(TerminalWidth(-1), 0u);
}

// A long name, a baseline, a wrong result and one that was not measured.
std::vector<Row> LongRows() {
  Row row = {.shape = {4096, 4096, 4096},
             .kernel = "hgemm_mma_m16n8k16_mma2x4_warp4x4x2_stage2_dsmem_xor_tn_f32acc",
             .family = "mma",
             .params = "swizzle=1024",
             .measured = true,
             .seconds = 0.0123,
             .fastest_seconds = 0.0120,
             .slowest_seconds = 0.0130,
             .iterations = 10,
             .tflops = 612.34,
             .gain = 0.12,
             .of_vendor = 0.91,
             .of_tuned_vendor = 0.88,
             .error = {.of_bound = 0.2, .first = -88.24163818359375, .last = 34.7}};
  Row wrong = row;
  wrong.kernel = "cublaslt_best";
  wrong.baseline = true;
  wrong.error.of_bound = 3;
  Row left = {.shape = row.shape,
              .kernel = row.kernel,
              .family = "mma",
              .note = "left out: its first run took 28 times as long as the best's did"};
  return {row, wrong, left};
}

TEST(ReportTable, FitsTheTerminalAndKeepsWhatMatters) {
  for (const size_t width : {80, 120}) {
    std::ostringstream out;
    PrintMetadata({{"device", "NVIDIA H200"}, {"command", "gemm_bench " + std::string(300, 'x')}},
                  out, width);
    PrintRows(LongRows(), 0, 1, "cuBLAS", out, width);
    PrintSummary(LongRows(), "cuBLAS", out, width);
    EXPECT_LE(WidestLine(out.str()), width) << out.str();
    EXPECT_THAT(out.str(), AllOf(HasSubstr("TFLOPS"), HasSubstr("612.34"), HasSubstr("WRONG"),
                                 HasSubstr("hgemm_mma_m16n8k16")));
  }
}

TEST(ReportTable, HasEveryColumnWhereThereIsRoom) {
  std::ostringstream out;
  PrintRows(LongRows(), 0, 1, "cuBLAS", out);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("D[0,0]"), HasSubstr("of Lt best"), HasSubstr("gain"),
                               HasSubstr("parameters"), HasSubstr("28 times")));
}

TEST(TextTable, AColumnWithNothingInItTakesNoPlace) {
  TextTable table({{"name"}, {"gain"}, {"note"}});
  table.Add({"a", "", "x"});
  std::ostringstream out;
  table.Print(out);
  EXPECT_THAT(out.str(), Not(HasSubstr("gain")));
}

}  // namespace
}  // namespace gemm::bench
