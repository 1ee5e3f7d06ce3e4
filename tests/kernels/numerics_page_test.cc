// The tables of docs/numerics.md are those of the code.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gemm/dtype.h"
#include "gemm/reference.h"
#include "gemm/scalars.h"
#include "kernels/reference/error_bound.h"

namespace gemm {
namespace {

std::string NumericsPage() {
  std::ifstream file(GEMM_NUMERICS_PAGE);
  return {std::istreambuf_iterator<char>(file), {}};
}

// "2^-24".
std::string PowerOfTwo(double value) {
  if (value == 0) return "0";
  int exponent = 0;
  std::frexp(value, &exponent);
  return absl::StrCat("2^", exponent - 1);
}

std::string ElementTypes() {
  std::string table =
      "| type | largest finite | unit roundoff | beyond the largest |\n"
      "| --- | ---: | ---: | --- |\n";
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    const double largest = LargestFinite(type);
    const bool integer = type == DType::kS8 || type == DType::kS32;
    std::string beyond = "wraps";
    if (type == DType::kS8) beyond = "an operand only";
    if (!integer) {
      beyond = std::isnan(RoundedElement(largest * 2, type)) ? "NaN" : "infinity";
    }
    absl::StrAppendFormat(&table, "| `%s` | %.6g | %s | %s |\n", Name(type), largest,
                          PowerOfTwo(UnitRoundoff(type)), beyond);
  }
  return table;
}

struct Mode {
  DType operands;
  DType d;
  Compute compute;
};

constexpr Mode kModes[] = {
    {DType::kF64, DType::kF64, Compute::kF64},   {DType::kF32, DType::kF32, Compute::kF32},
    {DType::kF32, DType::kF32, Compute::kF32x3}, {DType::kF32, DType::kF32, Compute::kTF32},
    {DType::kF16, DType::kF32, Compute::kF32},   {DType::kBF16, DType::kF32, Compute::kF32},
    {DType::kF16, DType::kF16, Compute::kF16},   {DType::kE4M3, DType::kF32, Compute::kF32},
    {DType::kE5M2, DType::kF32, Compute::kF32},  {DType::kS8, DType::kF32, Compute::kS32},
    {DType::kS8, DType::kS32, Compute::kS32},
};

std::string ErrorBounds() {
  constexpr int64_t kLengths[] = {128, 4096, 65536};
  std::string table =
      "| A, B | mode | D | accumulator | epilogue | worst, k = 128 | 4096 | 65536 | drawn, k = 128 "
      "| 4096 | 65536 |\n"
      "| --- | --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const Mode& mode : kModes) {
    const Types types{mode.operands, mode.operands, mode.d, mode.compute};
    absl::StrAppend(&table, "| `", Name(mode.operands), "` | `", Name(mode.compute), "` | `",
                    Name(mode.d), "` | ", Name(AccumulatorType(mode.compute)), " | ",
                    mode.d == DType::kS32 ? "s32" : Name(ScalarType(mode.compute)), " |");
    for (const int64_t k : kLengths) absl::StrAppendFormat(&table, " %.1e |", WorstCase(types, k));
    for (const int64_t k : kLengths) absl::StrAppendFormat(&table, " %.1e |", DrawnCase(types, k));
    table += "\n";
  }
  return table;
}

TEST(NumericsPage, HasTheElementTypes) {
  EXPECT_TRUE(absl::StrContains(NumericsPage(), ElementTypes()))
      << "docs/numerics.md should have\n\n"
      << ElementTypes();
}

TEST(NumericsPage, HasTheErrorBounds) {
  EXPECT_TRUE(absl::StrContains(NumericsPage(), ErrorBounds()))
      << "docs/numerics.md should have\n\n"
      << ErrorBounds();
}

}  // namespace
}  // namespace gemm
