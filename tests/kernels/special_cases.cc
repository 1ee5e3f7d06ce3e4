#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/kernels/special_values.h"

namespace gemm::testing {
namespace {

// Above 0 in f64, and 0 in every other type.
constexpr double kUnderflows = 1e-60;

double Smallest(DType type) {
  switch (type) {
    case DType::kF64:
      return 0x1p-1074;
    case DType::kF32:
      return 0x1p-149;
    case DType::kF16:
      return 0x1p-24;
    case DType::kBF16:
      return 0x1p-133;
    case DType::kE4M3:
      return 0x1p-9;
    default:
      return 0x1p-16;
  }
}

void FillIntegers(GuardedMatrix& matrix, int64_t largest, std::mt19937_64& random) {
  std::uniform_int_distribution<int64_t> draw(-largest, largest);
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    for (int64_t j = 0; j < matrix.cols(); ++j) {
      matrix.Set(i, j, static_cast<double>(draw(random)));
    }
  }
}

void Fill(GuardedMatrix& matrix, double value) {
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    for (int64_t j = 0; j < matrix.cols(); ++j) matrix.Set(i, j, value);
  }
}

// Elements of op(A) and op(B).
void SetA(ProductData& data, int64_t i, int64_t p, double value) {
  data.product.problem.trans_a ? data.a.Set(p, i, value) : data.a.Set(i, p, value);
}
void SetB(ProductData& data, int64_t p, int64_t j, double value) {
  data.product.problem.trans_b ? data.b.Set(j, p, value) : data.b.Set(p, j, value);
}

// The cases of one shape under construction.
class Cases {
 public:
  Cases(const Types& types, const ProductShape& shape) : types_(types), shape_(shape) {}

  // A case of integers with NaN beside the elements. The result is valid until the
  // next call.
  ProductData& Add(std::string name, Problem problem, bool c_is_d = false) {
    problem.m = shape_.m;
    problem.n = shape_.n;
    problem.k = shape_.k;
    problem.types = types_;
    problem.trans_a = cases_.size() % 2 == 1;
    problem.trans_b = cases_.size() % 4 >= 2;
    ProductCase product{.problem = problem, .c_is_d = c_is_d};
    product.extra_pitch_bytes = cases_.size() % 3 == 2 ? 32 : 0;
    product.seed = cases_.size();
    ProductData data(product);
    std::mt19937_64 random(product.seed);
    for (GuardedMatrix* matrix : {&data.a, &data.b}) {
      FillIntegers(*matrix, 1, random);
      matrix->PoisonGuards();
    }
    for (GuardedMatrix* matrix : {&data.c, &data.bias}) {
      FillIntegers(*matrix, 4, random);
      matrix->PoisonGuards();
    }
    cases_.push_back({.name = std::move(name), .data = std::move(data)});
    return cases_.back().data;
  }

  void LastIsSubnormal() { cases_.back().subnormal = true; }

  // If C is D, D begins as C.
  std::vector<SpecialCase> Finish() && {
    for (SpecialCase& special : cases_) {
      ProductData& data = special.data;
      special.wanted = WantedD(data);
      if (!data.product.c_is_d) continue;
      for (int64_t i = 0; i < data.d.rows(); ++i) {
        for (int64_t j = 0; j < data.d.cols(); ++j) data.d.Set(i, j, data.c.At(i, j));
      }
    }
    return std::move(cases_);
  }

  const Types& types() const { return types_; }
  const ProductShape& shape() const { return shape_; }
  bool f64() const { return types_.compute == Compute::kF64; }

 private:
  const Types types_;
  const ProductShape shape_;
  std::vector<SpecialCase> cases_;
};

constexpr std::pair<Activation, const char*> kActivations[] = {
    {Activation::kNone, "none"},
    {Activation::kRelu, "relu"},
    {Activation::kGelu, "gelu"},
    {Activation::kLeakyRelu, "leaky"},
};

void PoisonFactors(ProductData& data) {
  Fill(data.a, kNaN);
  Fill(data.b, kInfinity);
}

// alpha is 0, or so in the type that it is used in: A and B do not matter.
void AddWithoutProduct(Cases& cases) {
  for (const double alpha : {0.0, -0.0, kUnderflows}) {
    if (alpha != 0 && cases.f64()) continue;
    const std::string name = absl::StrCat("alpha ", alpha, " and NaN in A");
    PoisonFactors(cases.Add(name, {.alpha = alpha}));
    PoisonFactors(cases.Add(name + ", C", {.alpha = alpha, .beta = -2}));
    PoisonFactors(cases.Add(name + ", C is D", {.alpha = alpha, .beta = 2}, true));
    for (const auto& [activation, called] : kActivations) {
      ProductData& data = cases.Add(absl::StrCat(name, ", bias, ", called),
                                    {.alpha = alpha,
                                     .beta = 1,
                                     .bias = BiasAxis::kColumns,
                                     .activation = activation,
                                     .leaky_slope = 0.5},
                                    activation == Activation::kRelu);
      PoisonFactors(data);
      data.c.Set(1, 2, kInfinity);
      data.c.Set(2, 1, kNaN);
      data.bias.Set(0, 3, -kInfinity);
    }
    PoisonFactors(cases.Add(name + ", bias alone", {.alpha = alpha, .bias = BiasAxis::kRows}));
  }
}

// beta is 0, or so in its type: C does not matter.
void AddWithoutC(Cases& cases) {
  if (cases.f64()) return;
  for (const bool c_is_d : {false, true}) {
    ProductData& plain = cases.Add("beta 1e-60 and NaN in C", {.beta = kUnderflows}, c_is_d);
    Fill(plain.c, kNaN);
    ProductData& full = cases.Add(
        "beta 1e-60 and infinite C, bias, relu",
        {.beta = -kUnderflows, .bias = BiasAxis::kRows, .activation = Activation::kRelu}, c_is_d);
    Fill(full.c, kInfinity);
  }
}

// NaN and infinities in A and B, at the ends of k and between, reach the elements
// of their row or column and no other.
void PutSpecials(ProductData& data) {
  const Problem& p = data.product.problem;
  SetA(data, 0, p.k - 1, kNaN);
  SetA(data, 1, 0, kInfinity);
  SetA(data, p.m - 1, p.k / 2, -kInfinity);
  SetB(data, p.k - 1, 2, kNaN);
  SetB(data, 0, p.n - 1, kInfinity);
  if (p.beta == 0) return;
  data.c.Set(p.m - 2, 0, kNaN);
  data.c.Set(p.m - 2, 1, kInfinity);
  data.c.Set(1, p.n - 2, -kInfinity);
}

void AddPlainSpecials(Cases& cases) {
  PutSpecials(cases.Add("specials", {}));
  PutSpecials(cases.Add("specials, alpha", {.alpha = -2}));
  PutSpecials(cases.Add("specials, C", {.beta = -1}));
  PutSpecials(cases.Add("specials, C is D", {.alpha = 2, .beta = 1}, true));
}

void AddSpecialElements(Cases& cases) {
  for (const auto& [activation, called] : kActivations) {
    for (const BiasAxis bias : {BiasAxis::kNone, BiasAxis::kColumns, BiasAxis::kRows}) {
      ProductData& data =
          cases.Add(absl::StrCat("specials, ", called, ", bias ", static_cast<int>(bias)),
                    {.beta = bias == BiasAxis::kRows ? -1.0 : 0.0,
                     .bias = bias,
                     .activation = activation,
                     .leaky_slope = 0.25});
      PutSpecials(data);
      if (bias != BiasAxis::kNone) data.bias.Set(0, 3, kNaN);
    }
  }
}

// A leaky_relu of slope 0 is a relu, -inf included.
void AddSlopes(Cases& cases) {
  for (const double slope : {0.0, kUnderflows, -0.5}) {
    if (slope == kUnderflows && cases.f64()) continue;
    PutSpecials(cases.Add(absl::StrCat("specials, slope ", slope),
                          {.activation = Activation::kLeakyRelu, .leaky_slope = slope}));
  }
}

void AddZeros(Cases& cases) {
  for (const auto& [activation, called] : kActivations) {
    for (const double alpha : {1.0, -1.0}) {
      ProductData& data =
          cases.Add(absl::StrCat("-0 in A and C, alpha ", alpha, ", ", called),
                    {.alpha = alpha, .beta = 1, .activation = activation, .leaky_slope = 0.5});
      Fill(data.a, -0.0);
      Fill(data.c, -0.0);
    }
  }
}

// One term of each dot product is not zero, so that it alone decides.
void PickOneOfA(ProductData& data) {
  Fill(data.b, 0);
  const Problem& p = data.product.problem;
  for (int64_t j = 0; j < p.n; ++j) SetB(data, j % p.k, j, j % 2 == 0 ? 1 : -1);
}

void AddSubnormals(Cases& cases) {
  const double least_a = Smallest(cases.types().a), least_d = Smallest(cases.types().d);
  ProductData& factors = cases.Add("subnormal A", {});
  PickOneOfA(factors);
  Fill(factors.a, least_a);
  cases.LastIsSubnormal();
  ProductData& addends = cases.Add("subnormal C and bias", {.beta = 1, .bias = BiasAxis::kColumns});
  Fill(addends.a, 0);
  Fill(addends.c, 3 * least_d);
  Fill(addends.bias, -least_d);
  cases.LastIsSubnormal();
  if (cases.types().d != DType::kF32) return;
  // 2^-140 is a subnormal f32.
  PickOneOfA(cases.Add("subnormal alpha", {.alpha = 0x1p-140}));
  cases.LastIsSubnormal();
}

// A value that D's type cannot hold does no harm before C and the bias have been
// added: the epilogue is in f32, and rounds to D's type once.
void AddOverflows(Cases& cases) {
  for (const auto& [activation, called] : kActivations) {
    if (activation == Activation::kGelu) continue;
    // 2 * 192^2 = 73728 is beyond f16; 73728 - 57344 = 16384 is not.
    Problem with_c{.alpha = 2, .beta = -1, .activation = activation, .leaky_slope = 0.5};
    Problem with_bias{.alpha = 2, .activation = activation, .leaky_slope = 0.5};
    with_bias.bias = BiasAxis::kColumns;
    for (const bool c_is_d : {false, true}) {
      ProductData& c = cases.Add(absl::StrCat("overflow before C, ", called), with_c, c_is_d);
      PickOneOfA(c);
      for (GuardedMatrix* matrix : {&c.a, &c.b}) {
        for (int64_t i = 0; i < matrix->rows(); ++i) {
          for (int64_t j = 0; j < matrix->cols(); ++j) {
            matrix->Set(i, j, 192 * (matrix == &c.a ? 1 : std::abs(matrix->At(i, j))));
          }
        }
      }
      Fill(c.c, 57344);
    }
    ProductData& bias = cases.Add(absl::StrCat("overflow before the bias, ", called), with_bias);
    PickOneOfA(bias);
    for (int64_t j = 0; j < cases.shape().n; ++j) SetB(bias, j % cases.shape().k, j, 192);
    Fill(bias.a, 192);
    Fill(bias.bias, -57344);
  }
  // alpha and beta are no f16 either.
  ProductData& large = cases.Add("alpha and beta beyond f16", {.alpha = 0x1p20, .beta = -0x1p20});
  Fill(large.c, 0);
  PickOneOfA(large);
  for (int64_t j = 0; j < cases.shape().n; ++j) SetB(large, j % cases.shape().k, j, 0x1p-6);
  Fill(large.a, 0x1p-6);
}

}  // namespace

std::vector<SpecialCase> SpecialCases(const Types& types, const ProductShape& shape) {
  Cases cases(types, shape);
  AddWithoutProduct(cases);
  AddWithoutC(cases);
  AddPlainSpecials(cases);
  AddSpecialElements(cases);
  AddSlopes(cases);
  AddZeros(cases);
  AddSubnormals(cases);
  AddOverflows(cases);
  return std::move(cases).Finish();
}

std::vector<SpecialCase> SpecialElementCases(const Types& types, const ProductShape& shape) {
  Cases cases(types, shape);
  AddPlainSpecials(cases);
  return std::move(cases).Finish();
}

}  // namespace gemm::testing
