// Puts defects into right products, and shows which checks see them: the bound of drawn elements,
// the worst case, exact elements, `gemmctl --verify` and the benchmark's "right". Prints the tables
// that docs/results/defects.md sums up.
#include "tests/kernels/defects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/kernels/defect_programs.h"

namespace gemm::testing {
namespace {

constexpr int64_t kDepths[] = {64, 300, 1024, 4096, 16387};

ProductCase CaseOf(const Types& types, int64_t k, Elements elements) {
  return {.problem = {.m = kDefectSize,
                      .n = kDefectSize,
                      .k = k,
                      .types = types,
                      .alpha = 0.5,
                      .beta = 1,
                      .bias = BiasAxis::kColumns},
          .seed = 100,
          .elements = elements};
}

// The expected values of a product, computed once for all defects.
class Judge {
 public:
  Judge(const Product& right, Elements elements) : type_(right.problem().types.d) {
    const Operands operands = right.data().ForReference();
    ExpectedElements expected(right.problem(), operands, elements);
    for (int64_t i = 0; i < kDefectSize; ++i) {
      for (int64_t j = 0; j < kDefectSize; ++j) expected_.push_back(expected.At(i, j));
    }
  }

  // The largest error over its tolerance.
  double WorstRatio(const std::vector<std::byte>& result) const {
    double worst = 0;
    for (size_t i = 0; i < expected_.size(); ++i) {
      const double value = LoadElement(result.data(), static_cast<int64_t>(i), type_);
      const double error = std::abs(value - expected_[i].value);
      if (error > 0) worst = std::max(worst, error / expected_[i].tolerance);
    }
    return worst;
  }

 private:
  const DType type_;
  std::vector<Expected> expected_;  // row by row
};

std::vector<Types> AllTypes() {
  const Kernel& reference = **FindKernel("host_reference");
  return {reference.types.begin(), reference.types.end()};
}

std::string NameOf(const Types& types, absl::string_view between) {
  return absl::StrCat(Name(types.a), between, Name(types.b), between, Name(types.d), between,
                      Name(types.compute));
}

// The accumulators of f16 arithmetic may lose sqrt(k) 2^-11 of D, and those of fp8 in tensor
// cores 2^-6. A small defect of a long product changes less than that, so no bound tells one
// from the other. Exact elements do. Sums of s8 are exact, but bf16 lacks the digits for a bias
// beside long ones.
bool MayHide(const Types& types, const Defect& defect, int64_t k) {
  if (defect.large) return false;
  if (types.compute == Compute::kS32) return defect.epilogue && types.d == DType::kBF16;
  if (types.compute == Compute::kF16) return k >= 1024;
  return SizeOf(types.a) == 1 && k >= 4096;
}

// A row of a table: how many defects each check sees, and the errors over the bounds.
struct Findings {
  int of_drawn = 0, of_any = 0, of_exact = 0, gemmctl_drawn = 0, gemmctl_signs = 0;
  int bench = 0;
  int for_bench = 0;  // those that it could see
  std::string drawn_ratios, any_ratios;
};
using Key = std::pair<size_t, int64_t>;  // which types, and k
std::map<Key, Findings>& Found() {
  static auto* const found = new std::map<Key, Findings>;
  return *found;
}

std::string RatioText(double ratio) {
  const std::string text = absl::StrFormat("%.3g", ratio);
  return ratio > 1 ? absl::StrCat(" ", text, " |") : absl::StrCat(" **", text, "** |");
}

// All judges of the products of one depth.
class Court {
 public:
  Court(const Types& types, int64_t k)
      : drawn_(CaseOf(types, k, Elements::kDrawn)),
        exact_(CaseOf(types, k, Elements::kExact)),
        signs_(Thinning(types, k) == 1
                   ? exact_
                   : Product(CaseOf(types, k, Elements::kExact), Thinning(types, k))),
        plain_(Plain(CaseOf(types, k, Elements::kDrawn))),
        plain_exact_(Plain(CaseOf(types, k, Elements::kExact))) {}

  // All judges accept each right product.
  void Acquit() {
    const auto right = [](const Product& product) { return ResultOf(product, nullptr); };
    EXPECT_LE(by_drawn_.WorstRatio(right(drawn_)), 1);
    EXPECT_LE(by_any_.WorstRatio(right(drawn_)), 1);
    EXPECT_EQ(by_exact_.WorstRatio(right(exact_)), 0);
    EXPECT_LE(gemmctl_drawn_.WorstRatio(right(drawn_)), 1);
    EXPECT_EQ(gemmctl_signs_.WorstRatio(right(signs_)), 0);
    EXPECT_TRUE(bench_.IsRight(right(plain_), right(plain_exact_)));
  }

  void Try(const Defect& defect, bool may_hide, Findings& found) {
    const auto with = [&](const Product& product) { return ResultOf(product, &defect); };
    const double of_drawn = by_drawn_.WorstRatio(with(drawn_));
    const double of_any = by_any_.WorstRatio(with(drawn_));
    const bool of_exact = by_exact_.WorstRatio(with(exact_)) > 1;
    const bool gemmctl_drawn = gemmctl_drawn_.WorstRatio(with(drawn_)) > 1;
    const bool gemmctl_signs = gemmctl_signs_.WorstRatio(with(signs_)) > 1;
    EXPECT_TRUE(of_drawn > 1 || may_hide) << defect.name;
    EXPECT_TRUE(gemmctl_drawn || may_hide) << defect.name;
    EXPECT_TRUE(of_exact) << defect.name;
    EXPECT_TRUE(gemmctl_signs) << defect.name;
    found.of_drawn += of_drawn > 1;
    found.of_any += of_any > 1;
    found.of_exact += of_exact;
    found.gemmctl_drawn += gemmctl_drawn;
    found.gemmctl_signs += gemmctl_signs;
    found.drawn_ratios += RatioText(of_drawn);
    found.any_ratios += RatioText(of_any);
    if (defect.epilogue) return;
    const bool bench = !bench_.IsRight(with(plain_), with(plain_exact_));
    EXPECT_TRUE(bench) << defect.name;
    found.bench += bench;
    found.for_bench += 1;
  }

 private:
  // gemmctl compares integers exactly if no order of their sum exceeds an accumulator's range of
  // integers: with f16, up to 2048. Two thirds of the elements of a row are not 0.
  static int64_t Thinning(const Types& types, int64_t k) {
    return types.compute == Compute::kF16 ? k / 2048 + 1 : 1;
  }

  static ProductCase Plain(ProductCase product) {
    product.problem.alpha = 1;
    product.problem.beta = 0;
    product.problem.bias = BiasAxis::kNone;
    return product;
  }

  const Product drawn_, exact_, signs_, plain_, plain_exact_;
  const Judge by_drawn_{drawn_, Elements::kDrawn}, by_any_{drawn_, Elements::kAny},
      by_exact_{exact_, Elements::kExact};
  const GemmctlJudge gemmctl_drawn_{drawn_, Elements::kDrawn},
      gemmctl_signs_{signs_, Elements::kAny};
  BenchJudge bench_{plain_, plain_exact_};
};

class DefectsTest : public ::testing::TestWithParam<size_t> {
 protected:
  static void TearDownTestSuite();
};

TEST_P(DefectsTest, AreSeen) {
  const Types types = AllTypes()[GetParam()];
  for (const int64_t k : kDepths) {
    SCOPED_TRACE(absl::StrCat("k ", k));
    Court court(types, k);
    court.Acquit();
    for (const Defect& defect : Defects()) {
      if (defect.of_alpha && types.d == DType::kS32) continue;  // it is 1
      court.Try(defect, MayHide(types, defect, k), Found()[{GetParam(), k}]);
    }
  }
}

void PrintRatios(const char* title, std::string Findings::*ratios) {
  absl::PrintF("\n## %s\n\n| A:B:D:compute | k |", title);
  for (const Defect& defect : Defects()) absl::PrintF(" %s |", defect.name);
  absl::PrintF("\n| --- | ---: |");
  for (size_t i = 0; i < Defects().size(); ++i) absl::PrintF(" ---: |");
  absl::PrintF("\n");
  for (const auto& [key, found] : Found()) {
    absl::PrintF("| %s | %d |%s\n", NameOf(AllTypes()[key.first], ":"), key.second, found.*ratios);
  }
}

void DefectsTest::TearDownTestSuite() {
  Findings sum;
  std::string rows;
  const auto row = [](absl::string_view name, const Findings& x, size_t defects) {
    return absl::StrFormat("| %s | %d | %d | %d | %d | %d | %d | %d of %d |\n", name, defects,
                           x.of_drawn, x.of_any, x.of_exact, x.gemmctl_drawn, x.gemmctl_signs,
                           x.bench, x.for_bench);
  };
  for (const auto& [key, found] : Found()) {
    absl::StrAppend(&rows, row(absl::StrCat(NameOf(AllTypes()[key.first], ":"), ", k ", key.second),
                               found, Defects().size()));
    for (int Findings::*count :
         {&Findings::of_drawn, &Findings::of_any, &Findings::of_exact, &Findings::gemmctl_drawn,
          &Findings::gemmctl_signs, &Findings::bench, &Findings::for_bench}) {
      sum.*count += found.*count;
    }
  }
  absl::PrintF("\n## Seen\n\n");
  absl::PrintF(
      "| A:B:D:compute, k | defects | bound of drawn elements | worst case | exact elements | "
      "gemmctl --verify, drawn | gemmctl --verify, integers | gemm_bench |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n%s%s",
      row("all", sum, Found().size() * Defects().size()), rows);
  PrintRatios("Bound of drawn elements", &Findings::drawn_ratios);
  PrintRatios("Worst case", &Findings::any_ratios);
}

INSTANTIATE_TEST_SUITE_P(Types, DefectsTest, ::testing::Range(size_t{0}, AllTypes().size()),
                         [](const ::testing::TestParamInfo<size_t>& info) {
                           return NameOf(AllTypes()[info.param], "_");
                         });

}  // namespace
}  // namespace gemm::testing
