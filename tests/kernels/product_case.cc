#include "tests/kernels/product_case.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "gemm/dtype.h"
#include "gemm/run.h"

namespace gemm::testing {
namespace {

constexpr std::byte kPoison{0xFF};

template <class T, size_t kCount>
T Pick(const T (&choices)[kCount], std::mt19937_64& random) {
  return choices[std::uniform_int_distribution<size_t>(0, kCount - 1)(random)];
}

// `count` operands in their stored shape.
GuardedMatrix Stored(int64_t count, int64_t rows, int64_t cols, bool transposed, DType type,
                     int64_t extra) {
  return transposed ? GuardedMatrix(count * cols, rows, type, extra)
                    : GuardedMatrix(count * rows, cols, type, extra);
}

// The matrices of which there is one for each product: all but the stacked ones of a group.
struct OfEach {
  bool a, b, c_and_d, bias;
};

OfEach MatricesOfEach(const Problem& p) {
  switch (p.grouped) {
    case GroupedBy::kNothing:
      break;
    case GroupedBy::kM:
      return {.a = false, .b = true, .c_and_d = false, .bias = p.bias != BiasAxis::kRows};
    case GroupedBy::kK:
      return {.a = false, .b = false, .c_and_d = true, .bias = true};
  }
  return {.a = true, .b = true, .c_and_d = true, .bias = true};
}

int64_t Count(const Problem& p, bool of_each, bool shared) {
  if (!of_each || shared) return 1;
  return p.grouped == GroupedBy::kNothing ? p.batch : static_cast<int64_t>(p.extents.size());
}

// The block scales of an operand with `outer` rows (columns).
GuardedMatrix Scales(const ProductCase& product, ScaleBlocks blocks, int64_t outer) {
  if (blocks == ScaleBlocks::kNone) return GuardedMatrix(1, 1, DType::kF32, 0);
  return Stored(1, blocks == ScaleBlocks::kTiles ? ScaleBlockCount(outer) : outer,
                ScaleBlockCount(product.problem.k), product.scales_by_block, DType::kF32,
                product.extra_pitch_bytes);
}

// Scales of either sign, from 2^-6 to 2^6; powers of two if elements are exact.
void FillScales(const ProductCase& product, uint64_t seed, GuardedMatrix& scales) {
  std::mt19937_64 random(seed);
  const bool exact = product.elements == Elements::kExact;
  std::uniform_real_distribution<double> magnitude(-6, 6);
  for (int64_t i = 0; i < scales.rows(); ++i) {
    for (int64_t j = 0; j < scales.cols(); ++j) {
      const double exponent = magnitude(random) / (exact ? 3 : 1);
      const double scale = std::exp2(exact ? std::round(exponent) : exponent);
      scales.Set(i, j, random() % 4 == 0 ? -scale : scale);
    }
  }
}

ScaleView ViewOf(const ProductCase& product, ScaleBlocks blocks, const GuardedMatrix& scales) {
  if (blocks == ScaleBlocks::kNone) return {};
  return {.data = static_cast<const float*>(scales.data()),
          .line_step = product.scales_by_block ? 1 : scales.ld(),
          .block_step = product.scales_by_block ? scales.ld() : 1};
}

int64_t BiasLength(const Problem& p) { return p.bias == BiasAxis::kRows ? p.m : p.n; }

void Generate(const GeneratorSpec& spec, const GeneratorTarget& target) {
  // If all elements were alike, they would hide any mix-up of a kernel.
  if (!GenerateHost(spec, target).ok()) std::abort();
}

}  // namespace

GuardedMatrix::GuardedMatrix(int64_t rows, int64_t cols, DType type, int64_t extra_pitch_bytes)
    : rows_(rows),
      cols_(cols),
      type_(type),
      pitch_(PitchBytes(cols, type) + extra_pitch_bytes),
      bytes_(2 * kBand + static_cast<size_t>(rows * pitch_), kGuard) {}

void GuardedMatrix::FillUniform(uint64_t seed, double low, double high) {
  if (type_ == DType::kS8 || type_ == DType::kS32) {
    const double unit = type_ == DType::kS8 ? 0x1p7 : 0x1p30;
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> draw(low * unit, high * unit);
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t j = 0; j < cols_; ++j) Set(i, j, draw(random));
    }
    return;
  }
  Generate({seed, Distribution::kUniform, low, high}, TargetAt(data()));
}

void GuardedMatrix::FillIntegers(uint64_t seed, int64_t largest) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int64_t> draw(-largest, largest);
  for (int64_t i = 0; i < rows_; ++i) {
    for (int64_t j = 0; j < cols_; ++j) Set(i, j, static_cast<double>(draw(random)));
  }
}

void GuardedMatrix::FillNormal(uint64_t seed) {
  Generate({seed, Distribution::kNormal, 0, 1}, TargetAt(data()));
}

void GuardedMatrix::Poison() {
  for (int64_t i = 0; i < rows_; ++i) {
    std::fill_n(Row(i), static_cast<size_t>(cols_) * SizeOf(type_), kPoison);
  }
}

void GuardedMatrix::PoisonGuards() {
  const std::vector<std::byte> elements = bytes_;
  std::fill(bytes_.begin(), bytes_.end(), kPoison);
  for (int64_t i = 0; i < rows_; ++i) {
    const std::byte* row = elements.data() + kBand + i * pitch_;
    std::copy_n(row, static_cast<size_t>(cols_) * SizeOf(type_), Row(i));
  }
}

void GuardedMatrix::CopyRows(const GuardedMatrix& from, int64_t first) {
  std::copy_n(from.bytes_.data() + kBand + first * pitch_, rows_ * pitch_, Row(0));
}

bool GuardedMatrix::IsRowsOf(const GuardedMatrix& all, int64_t first) const {
  GuardedMatrix rows = *this;
  rows.CopyRows(all, first);
  return rows.bytes_ == bytes_;
}

bool GuardedMatrix::GuardIntact() const {
  const auto guards = [](const std::byte* from, const std::byte* to) {
    return std::all_of(from, to, [](std::byte b) { return b == kGuard; });
  };
  const std::byte* first = bytes_.data() + kBand;
  const int64_t dense = cols_ * static_cast<int64_t>(SizeOf(type_));
  if (!guards(bytes_.data(), first)) return false;
  for (int64_t i = 0; i < rows_; ++i) {
    if (!guards(first + i * pitch_ + dense, first + (i + 1) * pitch_)) return false;
  }
  return guards(first + rows_ * pitch_, bytes_.data() + bytes_.size());
}

std::ostream& operator<<(std::ostream& out, const ProductCase& product) {
  const Problem& p = product.problem;
  return out << p.m << "x" << p.n << "x" << p.k << " a " << Name(p.types.a) << " b "
             << Name(p.types.b) << " d " << Name(p.types.d) << " compute " << Name(p.types.compute)
             << (p.trans_a ? " T" : " N") << (p.trans_b ? "T" : "N") << " alpha " << p.alpha
             << " beta " << p.beta << (product.c_is_d ? " in place" : "") << " bias "
             << static_cast<int>(p.bias) << " activation " << static_cast<int>(p.activation)
             << " slope " << p.leaky_slope << " extra pitch " << product.extra_pitch_bytes
             << " scales " << static_cast<int>(p.scales_a) << static_cast<int>(p.scales_b)
             << (product.scales_by_block ? " by block" : "") << " seed " << product.seed
             << (product.elements == Elements::kExact ? " exact" : "");
}

ProductCase RandomCase(const Types& types, int64_t m, int64_t n, int64_t k,
                       std::mt19937_64& random) {
  ProductCase product;
  product.problem = {
      .m = m,
      .n = n,
      .k = k,
      .types = types,
      .trans_a = Pick({false, true}, random),
      .trans_b = Pick({false, true}, random),
      .alpha = Pick({1.0, 1.0, -0.5, 1.7, 0.75}, random),
      .beta = Pick({0.0, 0.0, 1.0, -0.3}, random),
      .bias = Pick({BiasAxis::kNone, BiasAxis::kColumns, BiasAxis::kRows}, random),
      .activation = Pick({Activation::kNone, Activation::kNone, Activation::kRelu,
                          Activation::kGelu, Activation::kLeakyRelu},
                         random),
      .leaky_slope = Pick({0.01, -1.5, 0.3}, random),
  };
  product.c_is_d = product.problem.beta != 0 && Pick({false, true}, random);
  product.extra_pitch_bytes = Pick({0, 16, 48, 128}, random);
  product.seed = random();
  return product;
}

ProductCase ExactCase(const Types& types, int64_t m, int64_t n, int64_t k,
                      std::mt19937_64& random) {
  ProductCase product = RandomCase(types, m, n, k, random);
  product.elements = Elements::kExact;
  Problem& problem = product.problem;
  problem.alpha = Pick({1.0, -1.0, 0.5}, random);
  if (problem.beta != 0) problem.beta = Pick({1.0, -2.0}, random);
  problem.activation = Pick({Activation::kNone, Activation::kNone, Activation::kLeakyRelu}, random);
  problem.leaky_slope = -0.5;
  return product;
}

ProductCase WithBlockScales(ProductCase product, ScaleBlocks of_a, ScaleBlocks of_b,
                            std::mt19937_64& random) {
  product.problem.scales_a = of_a;
  product.problem.scales_b = of_b;
  product.scales_by_block = Pick({false, true}, random);
  return product;
}

ProductCase Fitted(ProductCase product) {
  Problem& p = product.problem;
  if (p.types.d != DType::kS32) return product;
  const auto is_zero = [](double scalar) { return static_cast<float>(scalar) == 0; };
  // Scalars that are not finite, or are beyond f32, are there to be refused.
  const auto fits = [](double scalar) { return std::abs(scalar) < 1e38; };
  if (fits(p.alpha) && !is_zero(p.alpha)) p.alpha = 1;
  if (fits(p.beta) && !is_zero(p.beta)) p.beta = 1;
  if (p.activation != Activation::kNone) p.activation = Activation::kRelu;
  return product;
}

ProductData::ProductData(const ProductCase& given)
    : product(Fitted(given)),
      a(Stored(Count(product.problem, MatricesOfEach(product.problem).a, product.shared.a),
               product.problem.m, product.problem.k, product.problem.trans_a,
               product.problem.types.a, product.extra_pitch_bytes)),
      b(Stored(Count(product.problem, MatricesOfEach(product.problem).b, product.shared.b),
               product.problem.k, product.problem.n, product.problem.trans_b,
               product.problem.types.b, product.extra_pitch_bytes)),
      c(Count(product.problem, MatricesOfEach(product.problem).c_and_d, product.shared.c) *
            product.problem.m,
        product.problem.n, product.problem.types.d, product.extra_pitch_bytes),
      bias(Count(product.problem, MatricesOfEach(product.problem).bias, product.shared.bias),
           BiasLength(product.problem), product.problem.types.d, 0),
      d(Count(product.problem, MatricesOfEach(product.problem).c_and_d, false) * product.problem.m,
        product.problem.n, product.problem.types.d, product.extra_pitch_bytes),
      scales_a(Scales(product, product.problem.scales_a, product.problem.m)),
      scales_b(Scales(product, product.problem.scales_b, product.problem.n)) {
  FillScales(product, product.seed + 4, scales_a);
  FillScales(product, product.seed + 5, scales_b);
  if (product.elements == Elements::kExact) {
    a.FillIntegers(product.seed, 1);
    b.FillIntegers(product.seed + 1, 1);
    c.FillIntegers(product.seed + 2, 4);
    bias.FillIntegers(product.seed + 3, 4);
  } else {
    const double reach = ReachOf(product.problem.types);
    a.FillUniform(product.seed, -reach, reach);
    b.FillUniform(product.seed + 1, -reach, reach);
    c.FillUniform(product.seed + 2, -2, 2);
    bias.FillUniform(product.seed + 3, -1, 1);
  }
  if (product.c_is_d) {
    d = c;
  } else {
    d.Poison();
  }
}

Operands ProductData::ForReference() const {
  const Problem& p = product.problem;
  const SharedMatrices& shared = product.shared;
  const OfEach of_each = MatricesOfEach(p);
  return {
      .a = a.data(),
      .lda = a.ld(),
      .b = b.data(),
      .ldb = b.ld(),
      .c = reads_c() ? c.data() : nullptr,
      .ldc = reads_c() ? c.ld() : 0,
      .bias = reads_bias() ? bias.data() : nullptr,
      .d = const_cast<void*>(d.data()),
      .ldd = d.ld(),
      .stride_a = !of_each.a || shared.a ? 0 : (p.trans_a ? p.k : p.m) * a.ld(),
      .stride_b = !of_each.b || shared.b ? 0 : (p.trans_b ? p.n : p.k) * b.ld(),
      .stride_c = !of_each.c_and_d || shared.c || !reads_c() ? 0 : p.m * c.ld(),
      .stride_bias = !of_each.bias || shared.bias || !reads_bias() ? 0 : bias.ld(),
      .stride_d = of_each.c_and_d ? p.m * d.ld() : 0,
      .scales_a = ViewOf(product, p.scales_a, scales_a),
      .scales_b = ViewOf(product, p.scales_b, scales_b),
  };
}

absl::Status RunOnHost(const Kernel& kernel, ProductData& data) {
  const Problem& problem = data.product.problem;
  Operands operands = data.ForReference();
  if (data.product.c_is_d) operands.c = operands.d;
  const size_t bytes = WorkspaceBytes(kernel, problem);
  // Exactly as large as asked for, so that a sanitizer sees a step beyond it.
  std::vector<std::byte> workspace(bytes + 256, kPoison);
  const auto address = reinterpret_cast<uintptr_t>(workspace.data());
  std::byte* aligned = workspace.data() + (256 - address % 256) % 256;
  return RunProduct(
      kernel,
      {.problem = problem, .operands = operands, .workspace = {aligned, bytes}, .params = {}});
}

std::string CheckProduct(const Kernel& kernel, const ProductCase& given, const Runner& run,
                         int64_t max_samples) {
  ProductData data(given);
  const ProductCase product = data.product;
  const ProductData before = data;
  std::ostringstream wrong;
  if (const absl::Status status = run(kernel, data); !status.ok()) {
    wrong << status << "; ";
  }
  const Agreement agreement = CompareWithReference(product.problem, data.ForReference(),
                                                   product.elements, max_samples, product.seed);
  if (!(agreement.worst_ratio <= 1)) {
    const Expected expected =
        ExpectedElement(product.problem, data.ForReference(), product.elements, agreement.worst_row,
                        agreement.worst_col);
    wrong << "error is " << agreement.worst_ratio << " of the bound at (" << agreement.worst_row
          << ", " << agreement.worst_col
          << "): " << data.d.At(agreement.worst_row, agreement.worst_col) << ", expected "
          << expected.value << " +- " << expected.tolerance << "; ";
  }
  if (!data.d.GuardIntact()) wrong << "bytes beside D's elements changed; ";
  if (data.a.bytes() != before.a.bytes()) wrong << "A changed; ";
  if (data.b.bytes() != before.b.bytes()) wrong << "B changed; ";
  if (data.c.bytes() != before.c.bytes()) wrong << "C changed; ";
  if (data.bias.bytes() != before.bias.bytes()) wrong << "bias changed; ";
  if (data.scales_a.bytes() != before.scales_a.bytes()) wrong << "scales of A changed; ";
  if (data.scales_b.bytes() != before.scales_b.bytes()) wrong << "scales of B changed; ";
  if (wrong.str().empty()) return "";
  wrong << "kernel " << kernel.name << ", case " << product;
  return wrong.str();
}

}  // namespace gemm::testing
