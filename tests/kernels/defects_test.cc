// Defects put into right products, and who sees them: the bound of drawn elements, which the
// tests of the kernels, `gemmctl --verify` of generated operands and the benchmark's "right"
// use; the worst case, which `--verify` uses for a caller's files; and exact elements, which
// the tests of every kernel use besides. Prints the table of docs/results/defects.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/kernels/emulated_kernel.h"
#include "tests/kernels/product_case.h"

namespace gemm::testing {
namespace {

constexpr int64_t kSize = 32;   // rows and columns of D
constexpr int64_t kKTile = 32;  // products of a k-tile
constexpr int64_t kTail = 8;    // and of the tail that is dropped
constexpr int64_t kBlock = 16;  // rows that are swapped
constexpr int64_t kDepths[] = {64, 300, 1024, 4096, 16387};

// A right product, and what defects need to know of it.
class Product {
 public:
  explicit Product(const ProductCase& product) : data_(product) { RunEmulated(data_); }

  const Problem& problem() const { return data_.product.problem; }
  const ProductData& data() const { return data_; }
  double D(int64_t i, int64_t j) const { return data_.d.At(i, j); }
  double C(int64_t i, int64_t j) const { return data_.c.At(i, j); }
  double Bias(int64_t j) const { return data_.bias.At(0, j); }

  // alpha times the products from `from` up to `to`.
  double Part(int64_t i, int64_t j, int64_t from, int64_t to) const {
    double sum = 0;
    for (int64_t p = from; p < to; ++p) sum += data_.a.At(i, p) * data_.b.At(p, j);
    return problem().alpha * sum;
  }

 private:
  ProductData data_;
};

// What D(i, j) is with the defect.
using Defective = double (*)(const Product&, int64_t i, int64_t j);

double Zeros(const Product&, int64_t, int64_t) { return 0; }

double SwappedBlocks(const Product& p, int64_t i, int64_t j) { return p.D(i ^ kBlock, j); }

double TailDropped(const Product& p, int64_t i, int64_t j) {
  const int64_t k = p.problem().k;
  return p.D(i, j) - p.Part(i, j, k - kTail, k);
}

int64_t MiddleTile(const Product& p) { return p.problem().k / 2 / kKTile * kKTile; }

double KTileDropped(const Product& p, int64_t i, int64_t j) {
  const int64_t from = MiddleTile(p);
  return p.D(i, j) - p.Part(i, j, from, from + kKTile);
}

double KTileTwice(const Product& p, int64_t i, int64_t j) {
  const int64_t from = MiddleTile(p);
  return p.D(i, j) + p.Part(i, j, from, from + kKTile);
}

double BiasShifted(const Product& p, int64_t i, int64_t j) {
  return p.D(i, j) - p.Bias(j) + p.Bias((j + 1) % kSize);
}

double BiasLeftOut(const Product& p, int64_t i, int64_t j) { return p.D(i, j) - p.Bias(j); }

double AlphaTwice(const Product& p, int64_t i, int64_t j) {
  return p.D(i, j) + (p.problem().alpha - 1) * p.Part(i, j, 0, p.problem().k);
}

double CLeftOut(const Product& p, int64_t i, int64_t j) {
  return p.D(i, j) - p.problem().beta * p.C(i, j);
}

double LastColumnOfTheOneBefore(const Product& p, int64_t i, int64_t j) {
  return p.D(i, std::min(j, kSize - 2));
}

struct Defect {
  const char* name;
  Defective apply;
  bool large = false;  // as large as D
};

constexpr Defect kDefects[] = {
    {"all zeros", Zeros, true},
    {"16-row blocks swapped", SwappedBlocks, true},
    {"last column is the one before", LastColumnOfTheOneBefore, true},
    {"k-tail of 8 dropped", TailDropped},
    {"k-tile of 32 dropped", KTileDropped},
    {"k-tile of 32 twice", KTileTwice},
    {"bias shifted by a column", BiasShifted},
    {"bias left out", BiasLeftOut},
    {"alpha twice", AlphaTwice},
    {"C left out", CLeftOut},
};

ProductCase CaseOf(const Types& types, int64_t k, Elements elements) {
  return {.problem = {.m = kSize,
                      .n = kSize,
                      .k = k,
                      .types = types,
                      .alpha = 0.5,
                      .beta = 1,
                      .bias = BiasAxis::kColumns},
          .seed = 100,
          .elements = elements};
}

// What a product is compared with, worked out once for all defects.
class Judge {
 public:
  Judge(const Product& right, Elements elements) {
    const Operands operands = right.data().ForReference();
    ExpectedElements expected(right.problem(), operands, elements);
    for (int64_t i = 0; i < kSize; ++i) {
      for (int64_t j = 0; j < kSize; ++j) expected_.push_back(expected.At(i, j));
    }
  }

  // The largest error over its tolerance.
  template <class ValueAt>
  double WorstRatio(DType type, ValueAt&& value_at) const {
    double worst = 0;
    for (int64_t i = 0; i < kSize; ++i) {
      for (int64_t j = 0; j < kSize; ++j) {
        const Expected& expected = expected_[static_cast<size_t>(i * kSize + j)];
        const double error = std::abs(RoundedElement(value_at(i, j), type) - expected.value);
        if (error > 0) worst = std::max(worst, error / expected.tolerance);
      }
    }
    return worst;
  }

 private:
  std::vector<Expected> expected_;
};

std::vector<Types> AllTypes() {
  const Kernel& reference = **FindKernel("host_reference");
  return {reference.types.begin(), reference.types.end()};
}

std::string NameOf(const Types& types) {
  return absl::StrCat(Name(types.a), "_", Name(types.b), "_", Name(types.d), "_",
                      Name(types.compute));
}

// The accumulators of f16 arithmetic may lose sqrt(k) 2^-11 of D, and those of fp8 in tensor
// cores 2^-6. A small defect of a long product changes less than that, so no bound tells one
// from the other. Exact elements do.
bool MayHide(const Types& types, const Defect& defect, int64_t k) {
  if (defect.large) return false;
  if (types.compute == Compute::kF16) return k >= 1024;
  return SizeOf(types.a) == 1 && k >= 4096;
}

class Defects : public ::testing::TestWithParam<Types> {};

TEST_P(Defects, AreSeen) {
  const DType type = GetParam().d;
  for (const int64_t k : kDepths) {
    const Product drawn(CaseOf(GetParam(), k, Elements::kDrawn));
    const Product exact(CaseOf(GetParam(), k, Elements::kExact));
    const Judge by_drawn(drawn, Elements::kDrawn), by_any(drawn, Elements::kAny);
    const Judge by_exact(exact, Elements::kExact);
    const auto right = [](const Product& p) { return [&p](auto i, auto j) { return p.D(i, j); }; };
    EXPECT_LE(by_drawn.WorstRatio(type, right(drawn)), 1) << "k " << k;
    EXPECT_LE(by_any.WorstRatio(type, right(drawn)), 1) << "k " << k;
    EXPECT_EQ(by_exact.WorstRatio(type, right(exact)), 0) << "k " << k;
    for (const Defect& defect : kDefects) {
      const auto with = [&](const Product& p) {
        return [&](int64_t i, int64_t j) { return defect.apply(p, i, j); };
      };
      const double of_drawn = by_drawn.WorstRatio(type, with(drawn));
      const double of_any = by_any.WorstRatio(type, with(drawn));
      const double of_exact = by_exact.WorstRatio(type, with(exact));
      absl::PrintF("| %s | %d | %s | %.3g | %.3g | %s |\n", NameOf(GetParam()), k, defect.name,
                   of_drawn, of_any, of_exact > 1 ? "seen" : "not seen");
      EXPECT_TRUE(of_drawn > 1 || MayHide(GetParam(), defect, k)) << defect.name << ", k " << k;
      EXPECT_GT(of_exact, 1) << defect.name << ", k " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Defects, ::testing::ValuesIn(AllTypes()),
                         [](const ::testing::TestParamInfo<Types>& info) {
                           return NameOf(info.param);
                         });

}  // namespace
}  // namespace gemm::testing
