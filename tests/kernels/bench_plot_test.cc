// The picture of a benchmark: its highlighted lines and their names. Nothing is cut off, and
// nothing overlaps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/bench/report/plot.h"
#include "kernels/bench/report/plot_lines.h"

namespace gemm::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Row Measured(const std::string& kernel, const std::string& family, int64_t size, double tflops) {
  return {.shape = {size, size, size},
          .kernel = kernel,
          .family = family,
          .measured = true,
          .tflops = tflops};
}

// `families` of five kernels each, and the vendor's, at three sizes. All kernels'
// names begin and end alike, and all lines end close together.
std::vector<Row> Many(int families) {
  std::vector<Row> rows;
  for (const int64_t size : {256, 1024, 4096}) {
    for (int family = 0; family < families; ++family) {
      for (int kernel = 0; kernel < 5; ++kernel) {
        rows.push_back(Measured(absl::StrCat("hgemm_family", family, "_stage", kernel, "_f32acc"),
                                absl::StrCat("family", family), size,
                                100 + family * 0.25 + kernel * 0.01));
      }
    }
    rows.push_back(Measured("cublaslt_best", "cublaslt", size, 101));
    rows.back().baseline = true;
  }
  return rows;
}

// Every match of the first group of `pattern`.
std::vector<std::string> Found(const std::string& svg, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(svg.begin(), svg.end(), regex), end; match != end; ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

TEST(PlotLines, TheBestOfEachFamilyAndTheBaselinesStandOut) {
  std::vector<std::string> names;
  size_t grey = 0;
  for (const PlotLine& line : PlotLines(Many(3))) {
    if (line.highlighted) names.push_back(line.label);
    grey += line.highlighted ? 0 : 1;
  }
  // The fastest first; "hgemm", "stage4" and "f32acc" are in every name.
  EXPECT_THAT(names, ElementsAre("cublaslt_best", "family2", "family1", "family0"));
  EXPECT_EQ(grey, 12u);
}

TEST(PlotLines, AFewKernelsAllStandOut) {
  std::vector<Row> rows = {Measured("a_x", "one", 64, 1), Measured("a_y", "one", 64, 2),
                           Measured("a_z", "one", 64, 3)};
  for (const PlotLine& line : PlotLines(rows)) EXPECT_TRUE(line.highlighted) << line.name;
  EXPECT_EQ(PlotLines(rows).front().label, "z");
}

TEST(PlotLines, WhatDiffersIsInTheLabel) {
  std::vector<Row> rows = {Measured("k", "one", 64, 1), Measured("k", "one", 64, 2)};
  rows[0].params = "swizzle=0";
  rows[1].params = "swizzle=1024";
  EXPECT_EQ(PlotLines(rows)[0].label, "k swizzle=1024");
  rows[1].types = {DType::kF16, DType::kF16, DType::kF16, Compute::kF32};
  EXPECT_EQ(PlotLines(rows)[0].label, "k swizzle=1024 f16:f16:f16:f32");
}

TEST(PlotLines, SharedWordsAreLeftOutAndAWordIsKept) {
  EXPECT_THAT(WithoutSharedWords({"a_b_c_z", "a_d_c_z"}), ElementsAre("b", "d"));
  EXPECT_THAT(WithoutSharedWords({"a", "a_b"}), ElementsAre("a", "a_b"));
  EXPECT_THAT(WithoutSharedWords({"a_a", "a_a_a"}), ElementsAre("a", "a_a"));
  EXPECT_THAT(WithoutSharedWords({"a_b"}), ElementsAre("a_b"));
  EXPECT_THAT(WithoutSharedWords({}), ElementsAre());
}

TEST(PlotLines, LabelsAreSpreadAroundWhereTheyAreWanted) {
  EXPECT_THAT(SpreadLabels({50, 10}, 10, 0, 100), ElementsAre(50, 10));
  EXPECT_THAT(SpreadLabels({50, 50, 50}, 10, 0, 100), ElementsAre(40, 50, 60));
  EXPECT_THAT(SpreadLabels({99, 98}, 10, 0, 100), ElementsAre(100, 90));
  EXPECT_THAT(SpreadLabels({-5, 0, 8}, 10, 0, 100), ElementsAre(0, 10, 20));
  EXPECT_THAT(SpreadLabels({}, 10, 0, 100), ElementsAre());
}

TEST(Plot, LabelsAreInThePictureAndApart) {
  for (const int families : {2, 6, 12, 20}) {
    const std::string svg = PlotSvg(Many(families), {{"device", "GPU"}}, "");
    const double width = std::stod(Found(svg, "viewBox=\"0 0 ([0-9]+) ").at(0));
    const std::regex label(
        "<text x=\"([0-9.]+)\" y=\"([0-9.]+)\" text-anchor=\"start\" "
        "font-size=\"12\" fill=\"#333333\">([^<]*)</text>");
    std::vector<double> places;
    for (std::sregex_iterator match(svg.begin(), svg.end(), label), end; match != end; ++match) {
      const double x = std::stod((*match)[1]);
      EXPECT_LE(x + 7.0 * static_cast<double>((*match)[3].length()), width) << (*match)[3];
      places.push_back(std::stod((*match)[2]));
    }
    ASSERT_EQ(places.size(), std::min<size_t>(static_cast<size_t>(families), 12) + 1);
    std::sort(places.begin(), places.end());
    for (size_t i = 1; i < places.size(); ++i) EXPECT_GE(places[i] - places[i - 1], 14.85);
    EXPECT_GE(places.front(), 76);
    EXPECT_LE(places.back(), 76 + 420 + 4);
  }
}

TEST(Plot, HighlightsDifferInColourOrDashes) {
  const std::string svg = PlotSvg(Many(12), {}, "");
  const std::vector<std::string> pens =
      Found(svg, "<polyline points=\"[^\"]*\" (fill=\"none\" stroke=\"[^>]*)/>\n<circle");
  EXPECT_EQ(pens.size(), 13u);
  EXPECT_EQ(std::set<std::string>(pens.begin(), pens.end()).size(), 13u);
}

TEST(Plot, TheTitleSaysWhatAndWhere) {
  std::vector<Row> rows = Many(3);
  for (Row& row : rows) row.types = {DType::kF16, DType::kF16, DType::kF16, Compute::kF32};
  const std::string svg = PlotSvg(rows, {{"device", "GPU <1>"}}, "triton-31");
  EXPECT_THAT(svg, HasSubstr("TFLOPS over size on GPU &lt;1&gt;</text>"));
  EXPECT_THAT(svg, HasSubstr("f16:f16:f16:f32; layout nn; suite triton-31, 3 shapes</text>"));
  EXPECT_THAT(svg, HasSubstr("grey: 12 others"));
  EXPECT_THAT(svg, HasSubstr("<title>hgemm_family0_stage0_f32acc f16:f16:f16:f32 nn</title>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(Plot, OneKernelOneShapeAndNothingAreDrawn) {
  const std::string one = PlotSvg(std::vector<Row>{Measured("k", "f", 64, 1)}, {}, "");
  EXPECT_THAT(one, HasSubstr(">k</text>"));
  EXPECT_THAT(one, HasSubstr("64x64x64"));
  EXPECT_THAT(one, Not(HasSubstr("nan")));
  EXPECT_THAT(one, Not(HasSubstr("grey")));
  EXPECT_THAT(PlotSvg({}, {}, ""), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace gemm::bench
