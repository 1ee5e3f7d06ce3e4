#include "client/ctl/checks/verify.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/checks/exact_sums.h"
#include "client/ctl/output/format.h"
#include "gemm/generate.h"
#include "gemm/problem.h"

namespace gemmd::ctl {
namespace {

gemm::DType ToDType(client::DataType type) {
  switch (type) {
    case client::kF64:
      return gemm::DType::kF64;
    case client::kF16:
      return gemm::DType::kF16;
    case client::kBF16:
      return gemm::DType::kBF16;
    case client::kF8E4M3:
      return gemm::DType::kE4M3;
    case client::kF8E5M2:
      return gemm::DType::kE5M2;
    case client::kS8:
      return gemm::DType::kS8;
    case client::kS32:
      return gemm::DType::kS32;
    default:
      return gemm::DType::kF32;
  }
}

gemm::Compute ToCompute(client::ComputeMode compute, client::DataType a) {
  switch (compute) {
    case client::kComputeF64:
      return gemm::Compute::kF64;
    case client::kComputeF32:
      return gemm::Compute::kF32;
    case client::kComputeTF32:
      return gemm::Compute::kTF32;
    case client::kComputeF16:
      return gemm::Compute::kF16;
    case client::kComputeF32x3:
      return gemm::Compute::kF32x3;
    case client::kComputeS32:
      return gemm::Compute::kS32;
    default:
      if (a == client::kS8) return gemm::Compute::kS32;
      return a == client::kF64 ? gemm::Compute::kF64 : gemm::Compute::kF32;
  }
}

gemm::Activation ToActivation(client::Activation activation) {
  switch (activation) {
    case client::kRelu:
      return gemm::Activation::kRelu;
    case client::kGelu:
      return gemm::Activation::kGelu;
    case client::kLeakyRelu:
      return gemm::Activation::kLeakyRelu;
    default:
      return gemm::Activation::kNone;
  }
}

// A factor as the row-major matrix that its memory is.
struct Factor {
  const void* data;
  int64_t rows;
  int64_t cols;
  gemm::DType type;
  bool transposed;

  int64_t outer() const { return transposed ? cols : rows; }
  int64_t inner() const { return transposed ? rows : cols; }
};

// Memory of a column-major matrix is the row-major transpose.
Factor FactorOf(const client::MatrixView& matrix, bool transposed) {
  const client::Shape& shape = matrix.shape;
  const bool column_major = shape.layout == client::kColumnMajor;
  return {.data = matrix.data,
          .rows = column_major ? shape.cols : shape.rows,
          .cols = column_major ? shape.rows : shape.cols,
          .type = ToDType(shape.dtype),
          .transposed = transposed != column_major};
}

absl::Status CheckFits(const client::MatrixView& matrix, int64_t rows, int64_t cols,
                       const client::Shape& result, absl::string_view field) {
  const client::Shape& shape = matrix.shape;
  const bool same_layout = shape.layout == result.layout || rows == 1;
  if (shape.rows == rows && shape.cols == cols && shape.dtype == result.dtype && same_layout) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", client::ToString(shape),
                                                 "; a result of ", client::ToString(result),
                                                 " needs one of ", rows, "x", cols));
}

// The block scales of op(A) with `outer` rows, or of op(B) with so many columns.
absl::StatusOr<gemm::ScaleBlocks> TakeScales(const client::MatrixView& scales, bool of_a,
                                             int64_t outer, int64_t k, gemm::ScaleView& view) {
  const client::Shape& shape = scales.shape;
  const int64_t lines = of_a ? shape.rows : shape.cols, along_k = of_a ? shape.cols : shape.rows;
  const bool fits = shape.dtype == client::kF32 && along_k == gemm::ScaleBlockCount(k);
  if (!fits || (lines != outer && lines != gemm::ScaleBlockCount(outer))) {
    return absl::InvalidArgumentError(
        absl::StrCat(of_a ? "scales_a is " : "scales_b is ", client::ToString(shape),
                     "; it must be f32, with a scale for each block of 128"));
  }
  const bool line_is_row = of_a != (shape.layout == client::kColumnMajor);
  view = {.data = reinterpret_cast<const float*>(scales.data),
          .line_step = line_is_row ? along_k : 1,
          .block_step = line_is_row ? 1 : lines};
  return lines == outer ? gemm::ScaleBlocks::kLines : gemm::ScaleBlocks::kTiles;
}

gemm::GeneratorSpec SpecOf(const client::Generated& generated) {
  if (const auto* normal = std::get_if<client::Normal>(&generated.distribution)) {
    return {.seed = generated.seed,
            .distribution = gemm::Distribution::kNormal,
            .low_or_mean = normal->mean,
            .high_or_stddev = normal->stddev};
  }
  const auto& uniform = std::get<client::Uniform>(generated.distribution);
  return {.seed = generated.seed,
          .distribution = gemm::Distribution::kUniform,
          .low_or_mean = uniform.low,
          .high_or_stddev = uniform.high};
}

// Checks a single product.
absl::StatusOr<gemm::Agreement> CheckOne(const client::Product& product,
                                         const HostOperands& operands, client::ComputeMode compute,
                                         const client::MatrixView& result, int64_t max_samples,
                                         uint64_t seed) {
  const client::Shape& shape = result.shape;
  Factor left = FactorOf(operands.a, product.transpose_a);
  Factor right = FactorOf(operands.b, product.transpose_b);
  if (left.outer() != shape.rows || right.inner() != shape.cols || left.inner() != right.outer()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "op(A) of ", left.outer(), "x", left.inner(), " times op(B) of ", right.outer(), "x",
        right.inner(), " does not give a result of ", shape.rows, "x", shape.cols));
  }
  gemm::Problem problem;
  problem.k = left.inner();
  problem.alpha = product.alpha * product.scale_a * product.scale_b;
  problem.activation = ToActivation(product.activation);
  problem.leaky_slope = product.leaky_slope;
  gemm::Operands memory;
  if (product.c.has_value() && product.beta != 0) {
    const absl::Status fits = CheckFits(operands.c, shape.rows, shape.cols, shape, "c");
    if (!fits.ok()) return fits;
    problem.beta = product.beta;
    memory.c = operands.c.data;
  }
  const bool swapped = shape.layout == client::kColumnMajor;
  if (product.bias.has_value()) {
    const absl::Status fits = CheckFits(operands.bias, 1, shape.cols, shape, "bias");
    if (!fits.ok()) return fits;
    problem.bias = swapped ? gemm::BiasAxis::kRows : gemm::BiasAxis::kColumns;
    memory.bias = operands.bias.data;
  }
  if (operands.scales_a.data != nullptr) {
    const auto a = TakeScales(operands.scales_a, true, shape.rows, problem.k, memory.scales_a);
    if (!a.ok()) return a.status();
    const auto b = TakeScales(operands.scales_b, false, shape.cols, problem.k, memory.scales_b);
    if (!b.ok()) return b.status();
    problem.scales_a = swapped ? *b : *a;
    problem.scales_b = swapped ? *a : *b;
    if (swapped) std::swap(memory.scales_a, memory.scales_b);
  }
  // D^T = op(B)^T op(A)^T, and the memory of a column-major D is D^T row by row.
  if (swapped) {
    std::swap(left, right);
    left.transposed = !left.transposed;
    right.transposed = !right.transposed;
  }
  problem.m = swapped ? shape.cols : shape.rows;
  problem.n = swapped ? shape.rows : shape.cols;
  problem.types = {left.type, right.type, ToDType(shape.dtype),
                   ToCompute(compute, operands.a.shape.dtype)};
  problem.trans_a = left.transposed;
  problem.trans_b = right.transposed;
  memory.a = left.data;
  memory.lda = left.cols;
  memory.b = right.data;
  memory.ldb = right.cols;
  // The reference reads D and writes nothing.
  memory.d = const_cast<std::byte*>(result.data);
  memory.ldc = memory.ldd = problem.n;
  const gemm::Elements known =
      SumsAreExact(problem, memory) ? gemm::Elements::kExact : operands.known;
  gemm::Agreement agreement = gemm::CompareWithReference(problem, memory, known, max_samples, seed);
  if (swapped) std::swap(agreement.worst_row, agreement.worst_col);
  return agreement;
}

// All digits of a double, so that neighbours differ.
std::string ElementText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-infinity" : "infinity";
  return absl::StrFormat("%.17g", value);
}

using Extent = int64_t (*)(const client::ProductSize&);
int64_t M(const client::ProductSize& size) { return size.m; }
int64_t N(const client::ProductSize& size) { return size.n; }
int64_t K(const client::ProductSize& size) { return size.k; }
int64_t One(const client::ProductSize&) { return 1; }

// The lines of a stacked matrix that one product has.
struct Lines {
  int64_t first;
  int64_t count;
};

// Those of product `i` of a batch or a group, where each has a matrix of rows x cols.
Lines LinesOf(const client::Product& product, const client::Shape& shape, Extent rows, Extent cols,
              int64_t i) {
  const bool columns = shape.layout == client::kColumnMajor;
  if (product.group.empty()) {
    const int64_t own = (columns ? shape.cols : shape.rows) / product.batch_count;
    return {.first = i * own, .count = own};
  }
  const Extent lines = columns ? cols : rows;
  int64_t first = 0;
  for (int64_t j = 0; j < i; ++j) first += lines(product.group[static_cast<size_t>(j)]);
  return {.first = first, .count = lines(product.group[static_cast<size_t>(i)])};
}

client::MatrixView PartOf(client::MatrixView matrix, const Lines& lines) {
  client::Shape& shape = matrix.shape;
  int64_t& all = shape.layout == client::kColumnMajor ? shape.cols : shape.rows;
  all = 1;
  matrix.data += lines.first * static_cast<int64_t>(shape.bytes());
  all = lines.count;
  return matrix;
}

// Stacked in n, the bias is a single row.
client::MatrixView PartOfBias(const client::MatrixView& bias, const client::Product& product,
                              int64_t i) {
  if (bias.shape.rows > 1 || product.group.empty()) {
    return PartOf(bias, LinesOf(product, bias.shape, One, N, i));
  }
  client::MatrixView row = bias;
  row.shape.layout = client::kColumnMajor;  // so that its columns are its lines
  row = PartOf(row, LinesOf(product, row.shape, One, N, i));
  row.shape.layout = bias.shape.layout;
  return row;
}

// The part of the operands that product `i` has.
HostOperands PartOf(const HostOperands& all, const client::Product& product, int64_t i) {
  HostOperands part = all;
  const client::SharedOperands& shared = product.shared;
  if (!shared.a) {
    part.a = PartOf(all.a, product.transpose_a ? LinesOf(product, all.a.shape, K, M, i)
                                               : LinesOf(product, all.a.shape, M, K, i));
  }
  if (!shared.b) {
    part.b = PartOf(all.b, product.transpose_b ? LinesOf(product, all.b.shape, N, K, i)
                                               : LinesOf(product, all.b.shape, K, N, i));
  }
  if (!shared.c && all.c.data != nullptr) {
    part.c = PartOf(all.c, LinesOf(product, all.c.shape, M, N, i));
  }
  if (!shared.bias && all.bias.data != nullptr) part.bias = PartOfBias(all.bias, product, i);
  return part;
}

// The products that have elements in the result.
std::vector<int64_t> ProductsWithResults(const client::Product& product) {
  const bool grouped = !product.group.empty();
  const auto count = grouped ? static_cast<int64_t>(product.group.size()) : product.batch_count;
  std::vector<int64_t> products;
  for (int64_t i = 0; i < count; ++i) {
    const client::ProductSize size =
        grouped ? product.group[static_cast<size_t>(i)] : client::ProductSize{1, 1, 1};
    if (size.m > 0 && size.n > 0) products.push_back(i);
  }
  return products;
}

// Adds the agreement of a product whose result is `part` of the whole one.
void Add(const gemm::Agreement& found, const Lines& part, bool column_major, gemm::Agreement& sum) {
  if (sum.checked == 0 || sum.none_finite()) {
    sum.resolution = found.resolution;
  } else if (!found.none_finite()) {
    sum.resolution = std::max(sum.resolution, found.resolution);
  }
  sum.checked += found.checked;
  sum.not_finite += found.not_finite;
  sum.worst_absolute_error = std::max(sum.worst_absolute_error, found.worst_absolute_error);
  if (!(found.worst_ratio > sum.worst_ratio)) return;
  sum.worst_ratio = found.worst_ratio;
  sum.worst_value = found.worst_value;
  sum.worst_expected = found.worst_expected;
  sum.worst_row = found.worst_row + (column_major ? 0 : part.first);
  sum.worst_col = found.worst_col + (column_major ? part.first : 0);
}

}  // namespace

absl::StatusOr<gemm::Agreement> CheckProduct(const client::Product& product,
                                             const HostOperands& operands,
                                             client::ComputeMode compute,
                                             const client::MatrixView& result, int64_t max_samples,
                                             uint64_t seed) {
  const std::vector<int64_t> all = ProductsWithResults(product);
  const auto count = static_cast<int64_t>(all.size());
  // The corners of each product are checked in any case.
  constexpr int64_t kSamplesOfAProduct = 8;
  const int64_t products = std::min(count, std::max<int64_t>(2, max_samples / kSamplesOfAProduct));
  gemm::Agreement sum;
  for (int64_t n = 0; n < products; ++n) {
    const int64_t i =
        all[static_cast<size_t>(products == 1 ? 0 : n * (count - 1) / (products - 1))];
    const Lines lines = LinesOf(product, result.shape, M, N, i);
    const auto found =
        CheckOne(product, PartOf(operands, product, i), compute, PartOf(result, lines),
                 std::max<int64_t>(1, max_samples / products), seed + static_cast<uint64_t>(n));
    if (!found.ok()) return found.status();
    Add(*found, lines, result.shape.layout == client::kColumnMajor, sum);
  }
  return sum;
}

std::string Explain(const gemm::Agreement& agreement) {
  const std::string element =
      absl::StrCat("element (", agreement.worst_row, ", ", agreement.worst_col, ")");
  // For NaN, infinity and exact products a distance says nothing.
  if (!std::isfinite(agreement.worst_ratio)) {
    return absl::StrCat(element, " is ", ElementText(agreement.worst_value), "; it must be ",
                        ElementText(agreement.worst_expected));
  }
  return absl::StrCat(element, " is off by ", NumberText(agreement.worst_absolute_error), ", ",
                      NumberText(agreement.worst_ratio), " times the bound of its arithmetic");
}

std::string ExplainResolution(const gemm::Agreement& agreement, gemm::Elements known) {
  const char* const worst_case =
      known != gemm::Elements::kAny ? "" : "; the bound is the worst case of any elements";
  if (agreement.none_finite()) {
    return "only NaN and infinities were compared: no checked element should be finite";
  }
  if (agreement.resolution == 0) {
    return "every error is seen: operands of small integers have one right result";
  }
  if (!std::isfinite(agreement.resolution)) {
    return absl::StrCat("nothing is seen: an accumulator may overflow, or all elements are 0",
                        worst_case);
  }
  return absl::StrCat("errors above ", NumberText(agreement.resolution),
                      " of a typical element are seen", worst_case);
}

gemm::Elements WhatIsKnown(const client::Operand& a, const client::Operand& b) {
  const auto* left = std::get_if<client::Generated>(&a);
  const auto* right = std::get_if<client::Generated>(&b);
  // Equal seeds draw equal elements.
  const bool drawn = left != nullptr && right != nullptr && left->seed != right->seed &&
                     (gemm::IsSymmetric(SpecOf(*left)) || gemm::IsSymmetric(SpecOf(*right)));
  return drawn ? gemm::Elements::kDrawn : gemm::Elements::kAny;
}

absl::StatusOr<client::HostMatrix> DrawHere(const client::Generated& generated) {
  auto matrix = client::HostMatrix::Allocate(generated.shape);
  if (!matrix.ok()) return matrix.status();
  const gemm::GeneratorSpec spec = SpecOf(generated);
  const client::Shape& shape = generated.shape;
  const bool column_major = shape.layout == client::kColumnMajor;
  const int64_t line = column_major ? shape.rows : shape.cols;
  const absl::Status drawn = gemm::GenerateHost(
      spec, {.data = matrix->data(),
             .type = ToDType(shape.dtype),
             .rows = shape.rows,
             .cols = shape.cols,
             .pitch_bytes = line * static_cast<int64_t>(client::SizeOf(shape.dtype)),
             .column_major = column_major});
  if (!drawn.ok()) return drawn;
  return matrix;
}

absl::StatusOr<client::MatrixView> ElementsOf(client::Client& client,
                                              const client::Operand& operand,
                                              const client::CallOptions& options) {
  if (const auto* generated = std::get_if<client::Generated>(&operand)) {
    const auto drawn = DrawHere(*generated);
    if (!drawn.ok()) return drawn.status();
    return drawn->view();
  }
  if (const auto* resident = std::get_if<client::Resident>(&operand)) {
    // This download must not release a matrix that the product is to release.
    client::Resident kept = *resident;
    kept.release = false;
    const auto fetched = client.GetMatrix(kept, {}, options);
    if (!fetched.ok()) return fetched.status();
    return fetched->matrix.view();
  }
  return std::get<client::MatrixView>(operand);
}

}  // namespace gemmd::ctl
