// Reports of a benchmark's rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "files/output_file.h"
#include "kernels/bench/catalogue_page.h"
#include "kernels/bench/report/live_report.h"
#include "kernels/bench/report/report_files.h"
#include "kernels/bench/report/report_table.h"
#include "kernels/bench/result/summary.h"
#include "nlohmann/json.hpp"

namespace gemm::bench {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Row Measured(const std::string& kernel, Shape shape, double tflops) {
  Row row = {.shape = shape, .kernel = kernel, .family = "family", .measured = true};
  row.seconds = Flops(shape) / tflops * 1e-12;
  row.fastest_seconds = row.slowest_seconds = row.seconds;
  row.iterations = 3;
  row.tflops = tflops;
  row.of_vendor = tflops / 8;
  return row;
}

Row LeftOut(const std::string& kernel, Shape shape, const std::string& why) {
  return {.shape = shape, .kernel = kernel, .family = "family", .note = why};
}

std::vector<Row> TwoKernels() {
  return {Measured("quick", {8, 8, 8}, 2), Measured("steady", {8, 8, 8}, 3),
          Measured("quick", {64, 64, 64}, 8), Measured("steady", {64, 64, 64}, 3)};
}

TEST(Statistics, MedianAndGeometricMean) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(Median({}), 0);
  EXPECT_NEAR(GeometricMean({2, 8}), 4, 1e-12);
}

TEST(Summary, MeansOfKernelsAndOfFamilies) {
  const auto kernels = SummariseKernels(TwoKernels());
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].kernel, "quick");
  EXPECT_NEAR(kernels[0].tflops, 4, 1e-9);
  EXPECT_NEAR(kernels[0].of_vendor->mean, 0.5, 1e-9);
  EXPECT_EQ(kernels[0].shapes, 2u);
  const auto families = SummariseFamilies(TwoKernels());
  ASSERT_EQ(families.size(), 1u);
  EXPECT_EQ(families[0].best.kernel, "quick");
  EXPECT_NEAR(families[0].per_shape_tflops, std::sqrt(3 * 8), 1e-9);
}

// The mean gives every shape the same weight; the ratio of times gives it to every second.
TEST(Summary, SaysWhatAMeanHides) {
  std::vector<Row> rows = TwoKernels();
  // It takes 1 and 9 seconds, a baseline 2 and 6.
  rows[0].seconds = 1;
  rows[0].of_vendor = 2;
  rows[2].seconds = 9;
  rows[2].of_vendor = 6.0 / 9;
  rows[2].of_tuned_vendor = kLostShare;
  const auto kernels = SummariseKernels(rows);
  EXPECT_GT(kernels[0].of_vendor->mean, 1.15);
  EXPECT_NEAR(kernels[0].of_vendor->by_time, 0.8, 1e-9);
  EXPECT_EQ(kernels[0].of_vendor->shapes, 2u);
  EXPECT_EQ(kernels[0].of_vendor->lost, 1u);
  EXPECT_EQ(kernels[0].of_tuned_vendor->shapes, 1u) << "of those that both were measured on";
  EXPECT_EQ(kernels[0].of_tuned_vendor->lost, 0u);
  EXPECT_FALSE(kernels[1].of_tuned_vendor.has_value());

  std::ostringstream out;
  PrintSummary(rows, "cuBLAS", out);
  EXPECT_THAT(out.str(),
              ContainsRegex("of cuBLAS +by time +<0\\.97 +of Lt best +by time +<0\\.97"));
  EXPECT_THAT(out.str(), ContainsRegex("quick .* 1\\.155 +0\\.800 +1/2 +0\\.970 +0\\.970 +0/1 "));
  EXPECT_THAT(out.str(), HasSubstr("by time: the baseline's times, summed, over the kernel's"));

  const auto json = nlohmann::json::parse(ToJson({}, rows));
  EXPECT_NEAR(json["kernels"][0]["of_vendor_by_time"], 0.8, 1e-9);
  EXPECT_EQ(json["kernels"][0]["of_vendor_shapes"], 2);
  EXPECT_EQ(json["kernels"][0]["of_vendor_below_0.97"], 1);
  EXPECT_TRUE(json["kernels"][1]["of_cublaslt_best_by_time"].is_null());
  // The fastest of each shape: steady, with 3/8 of the vendor, and quick.
  const auto& family = json["families"][0];
  EXPECT_EQ(family["per_shape_of_vendor_shapes"], 2);
  EXPECT_EQ(family["per_shape_of_vendor_below_0.97"], 2);
}

TEST(Summary, RowThatMissesShapesIsNotTheBest) {
  std::vector<Row> rows = TwoKernels();
  rows[0] = LeftOut("quick", {8, 8, 8}, "no time");
  EXPECT_EQ(SummariseKernels(rows)[0].missing, 1u);
  EXPECT_EQ(SummariseFamilies(rows)[0].best.kernel, "steady");
}

TEST(Table, ShowsFiguresAndReasons) {
  std::ostringstream out;
  Row wrong = Measured("wrong", {8, 8, 8}, 1);
  wrong.error.of_bound = 7;
  PrintRows(std::vector<Row>{Measured("quick", {8, 8, 8}, 2), wrong,
                             LeftOut("late", {8, 8, 8}, "no time")},
            0, 2, "cuBLAS", out);
  EXPECT_THAT(out.str(), HasSubstr("M=8, N=8, K=8"));
  EXPECT_THAT(out.str(), HasSubstr("1/2"));
  EXPECT_THAT(out.str(), HasSubstr("of cuBLAS"));
  EXPECT_THAT(out.str(), HasSubstr("7.000 WRONG"));
  EXPECT_THAT(out.str(), HasSubstr("no time"));
}

// Joules of quick on both shapes, and of steady on one.
std::vector<Row> WithJoules() {
  std::vector<Row> rows = TwoKernels();
  rows[0].joules = 0.25;
  rows[0].joules_of_baseline = 0.5;
  rows[1].joules = 0.125;
  rows[2].joules = 4;
  rows[2].joules_of_baseline = 2;
  return rows;
}

TEST(Summary, JoulesAreMeansOfAllShapesOrMissing) {
  const auto kernels = SummariseKernels(WithJoules());
  EXPECT_NEAR(*kernels[0].joules, 1, 1e-9);
  EXPECT_NEAR(*kernels[0].joules_of_baseline, 1, 1e-9);
  EXPECT_FALSE(kernels[1].joules.has_value()) << "of the small shape alone";
  EXPECT_FALSE(kernels[1].joules_of_baseline.has_value());
}

TEST(Table, HasJoulesOnlyWhereTheyWereMeasured) {
  std::ostringstream without, with, means;
  PrintRows(TwoKernels(), 0, 1, "cuBLAS", without);
  PrintSummary(TwoKernels(), "cuBLAS", without);
  EXPECT_THAT(without.str(), Not(HasSubstr("joules")));
  EXPECT_THAT(without.str(), Not(HasSubstr("J of baseline")));
  std::vector<Row> rows = WithJoules();
  rows[3] = LeftOut("late", {64, 64, 64}, "no time");
  PrintRows(rows, 0, 1, "cuBLAS", with);
  EXPECT_THAT(with.str(), ContainsRegex("of Lt best +joules +J of baseline +of bound"));
  EXPECT_THAT(with.str(), ContainsRegex("quick .* 0\\.25 +0\\.500 "));
  EXPECT_THAT(with.str(), ContainsRegex("steady .* 0\\.125 +- "));
  EXPECT_THAT(with.str(), ContainsRegex("late .* - +- +- +- +- +no time"));
  PrintSummary(WithJoules(), "cuBLAS", means);
  EXPECT_THAT(means.str(), ContainsRegex("quick .* 1 +1\\.000 "));
}

TEST(Csv, IsWrittenRowByRowAndQuoted) {
  const std::string path = ::testing::TempDir() + "/rows.csv";
  auto csv = CsvWriter::Create(path).value();
  ASSERT_EQ(csv.Begin(), absl::OkStatus());
  const std::vector<Row> rows = {Measured("quick", {8, 9, 10}, 2),
                                 LeftOut("late", {8, 9, 10}, "no \"time\", none")};
  ASSERT_EQ(csv.Write(rows), absl::OkStatus());
  std::ifstream file(path);  // while the writer is open
  std::string names, first, second;
  ASSERT_TRUE(std::getline(file, names) && std::getline(file, first) && std::getline(file, second));
  EXPECT_THAT(names, HasSubstr("m,n,k,kernel,family,types,layout"));
  EXPECT_THAT(first, HasSubstr("8,9,10,quick,family,"));
  EXPECT_THAT(second, HasSubstr("\"no \"\"time\"\", none\""));
  EXPECT_EQ(CsvWriter::Create("/nowhere/rows.csv").status().code(), absl::StatusCode::kNotFound);
}

TEST(Files, HaveJoulesOrNothing) {
  const std::string path = ::testing::TempDir() + "/joules.csv";
  auto csv = CsvWriter::Create(path).value();
  ASSERT_EQ(csv.Begin(), absl::OkStatus());
  const std::vector<Row> rows = WithJoules();
  ASSERT_EQ(csv.Write(rows), absl::OkStatus());
  std::ifstream file(path);
  std::string names, first, second;
  ASSERT_TRUE(std::getline(file, names) && std::getline(file, first) && std::getline(file, second));
  EXPECT_THAT(names, HasSubstr("of_cublaslt_best,joules,joules_of_baseline,first"));
  EXPECT_THAT(first, HasSubstr(",0.25,,0.25,0.5,")) << "of_vendor, no of_cublaslt_best";
  EXPECT_THAT(second, HasSubstr(",0.375,,0.125,,"));
  const auto json = nlohmann::json::parse(ToJson({}, rows));
  EXPECT_EQ(json["rows"][2]["joules"], 4);
  EXPECT_TRUE(json["rows"][3]["joules"].is_null());
  EXPECT_NEAR(json["kernels"][0]["joules_of_baseline"], 1, 1e-9);
  EXPECT_TRUE(json["kernels"][1]["joules"].is_null());
}

TEST(Json, HoldsMetadataRowsAndMeans) {
  std::vector<Row> rows = TwoKernels();
  rows[0].error.of_bound = std::numeric_limits<double>::infinity();
  const auto json = nlohmann::json::parse(ToJson({{"device", "GPU"}}, rows));
  EXPECT_EQ(json["metadata"]["device"], "GPU");
  EXPECT_EQ(json["rows"].size(), 4u);
  EXPECT_EQ(json["rows"][2]["tflops"], 8);
  EXPECT_TRUE(json["rows"][0]["error_of_bound"].is_null());
  EXPECT_EQ(json["rows"][0]["right"], false);
  EXPECT_EQ(json["kernels"].size(), 2u);
  EXPECT_EQ(json["families"][0]["best"]["kernel"], "quick");
}

TEST(CataloguePage, HasARowAKernelAndColumnsForWhatIsKnown) {
  const Kernel kernel = {.name = "sgemm_step",
                         .family = "simt",
                         .summary = "a step",
                         .capability = {.min = 80},
                         .tile_m = 128,
                         .tile_n = 64,
                         .tile_k = 8,
                         .threads = 256};
  const Kernel* const kernels[] = {&kernel};
  const std::string plain = CataloguePage(kernels, {});
  EXPECT_THAT(plain, HasSubstr("## simt"));
  EXPECT_THAT(plain, HasSubstr("| `sgemm_step` | a step |  | 128x64x8 |  | 256 |"));
  EXPECT_THAT(plain, HasSubstr("sm_80 and up"));
  EXPECT_THAT(plain, Not(HasSubstr("registers")));

  const std::string registers = ::testing::TempDir() + "/registers.txt";
  ASSERT_EQ(gemmd::files::WriteFile(
                registers, "sgemm_step 80 100 0\nsgemm_step 90 96 0\nsgemm_step 90 99 0\n"),
            absl::OkStatus());
  const std::string means = ::testing::TempDir() + "/means.json";
  ASSERT_EQ(gemmd::files::WriteFile(
                means, ToJson({}, std::vector<Row>{Measured("sgemm_step", {8, 8, 8}, 4)})),
            absl::OkStatus());
  CatalogueNotes notes;
  ASSERT_EQ(ReadRegisters(registers, notes), absl::OkStatus());
  ASSERT_EQ(ReadStandings(means, notes), absl::OkStatus());
  EXPECT_THAT(CataloguePage(kernels, notes), HasSubstr("| 99 | 4.0 | 0.500 |"));
  EXPECT_FALSE(ReadStandings(registers, notes).ok());
  EXPECT_FALSE(ReadRegisters("/nowhere", notes).ok());
}

TEST(LiveReport, PrintsAndWritesAsRowsCome) {
  const std::string csv = ::testing::TempDir() + "/live.csv";
  const std::string json = ::testing::TempDir() + "/live.json";
  std::ostringstream out, err;
  LiveReport report({.csv = csv, .json = json}, out, err, /*err_is_terminal=*/true);
  ASSERT_EQ(report.Open(), absl::OkStatus());
  ASSERT_EQ(report.Begin({{"device", "GPU"}}, "cuBLAS", 2), absl::OkStatus());
  EXPECT_THAT(out.str(), HasSubstr("GPU"));
  report.Update({.shapes = 2, .at = {8, 8, 8}, .step = "quick", .elapsed = absl::Seconds(1)});
  EXPECT_THAT(err.str(), HasSubstr("shape 1/2 8x8x8"));
  report.Add(std::vector<Row>{Measured("quick", {8, 8, 8}, 2)}, 0);
  EXPECT_THAT(err.str(), ::testing::EndsWith("\r\x1b[K"));
  EXPECT_THAT(out.str(), HasSubstr("M=8, N=8, K=8"));
  std::ifstream rows(csv);
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(rows), {}, '\n'), 2);
  report.AddMetadata("disturbed by", "3 jobs");
  ASSERT_EQ(report.Finish(), absl::OkStatus());
  EXPECT_THAT(out.str(), HasSubstr("geometric means"));
  std::ifstream file(json);
  EXPECT_EQ(nlohmann::json::parse(file)["metadata"]["disturbed by"], "3 jobs");
}

TEST(LiveReport, CanBeSilentAndSaysWhatItCannotWrite) {
  std::ostringstream out, err;
  LiveReport report({.tables = Outputs::Tables::kNone, .quiet = true, .plot = "/dev/full"}, out,
                    err, true);
  ASSERT_EQ(report.Open(), absl::OkStatus());
  ASSERT_EQ(report.Begin({}, "cuBLAS", 1), absl::OkStatus());
  report.Update({.shapes = 1, .step = "quick", .elapsed = absl::Seconds(1)});
  report.Add(TwoKernels(), 0);
  EXPECT_THAT(std::string(report.Finish().message()), HasSubstr("/dev/full"));
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(err.str(), "");
  for (const Outputs& outputs : {Outputs{.csv = "/nowhere/x"}, Outputs{.json = "/nowhere/x"},
                                 Outputs{.plot = "/nowhere/x"}}) {
    LiveReport refused(outputs, out, err, true);
    EXPECT_THAT(std::string(refused.Open().message()), HasSubstr("/nowhere/x"));
  }
}

// A refused benchmark has no rows, and removes none from the files.
TEST(LiveReport, FilesKeepWhatTheyHaveUntilItBegins) {
  const std::string csv = ::testing::TempDir() + "/kept.csv";
  std::ofstream(csv) << "of another day";
  std::ostringstream out, err;
  {
    LiveReport report({.csv = csv}, out, err, true);
    ASSERT_EQ(report.Open(), absl::OkStatus());
  }
  std::ifstream file(csv);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "of another day");
  LiveReport without({}, out, err, true);
  EXPECT_EQ(without.Finish(), absl::OkStatus());
  EXPECT_EQ(out.str(), "") << "there are no means of nothing";
}

TEST(CheckRows, NamesTheFirstThatIsWrong) {
  std::vector<Row> rows = TwoKernels();
  EXPECT_EQ(CheckRows(rows), absl::OkStatus());
  rows[1].error.of_bound = 7;
  const absl::Status status = CheckRows(rows);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "steady on 8x8x8 is wrong by 7 times what is allowed");
  rows[1].measured = false;
  EXPECT_EQ(CheckRows(rows), absl::OkStatus());
}

TEST(CheckMeasured, SaysWhyNothingWas) {
  std::vector<Row> rows = TwoKernels();
  for (Row& row : rows) row.measured = false;
  rows[0].note = "no memory";
  const absl::Status status = CheckMeasured(rows);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("nothing was measured: "), HasSubstr("on 8x8x8: no memory")));
  rows[1].measured = true;
  EXPECT_EQ(CheckMeasured(rows), absl::OkStatus());
}

TEST(ProgressReport, TellsAFileLessThanATerminal) {
  Progress progress = {.shape = 11,
                       .shapes = 125,
                       .at = {1, 2, 3},
                       .step = "quick",
                       .elapsed = absl::Seconds(1),
                       .left = absl::Minutes(5)};
  EXPECT_EQ(ProgressText(progress), "shape 12/125 1x2x3  1 s, about 5 min left  quick");
  std::ostringstream terminal, file;
  ProgressReport on_terminal(terminal, true), in_file(file, false);
  on_terminal.Update(progress);
  in_file.Update(progress);
  EXPECT_THAT(terminal.str(), HasSubstr("quick"));
  EXPECT_EQ(file.str(), "");
  progress.elapsed = absl::Seconds(11);
  in_file.Update(progress);
  EXPECT_THAT(file.str(), HasSubstr("quick\n"));
}

}  // namespace
}  // namespace gemm::bench
