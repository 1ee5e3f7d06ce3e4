#include "gemmd/client/product.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gemmd::client {
namespace {

// The operand's shape where it is known; an error where it is bad.
absl::StatusOr<std::optional<Shape>> KnownShape(const Operand& operand, absl::string_view field) {
  std::optional<Shape> shape;
  if (const auto* view = std::get_if<MatrixView>(&operand)) shape = view->shape;
  if (const auto* generated = std::get_if<Generated>(&operand)) shape = generated->shape;
  if (const auto* resident = std::get_if<Resident>(&operand)) shape = resident->shape;
  if (shape) {
    if (absl::Status status = CheckShape(*shape, field); !status.ok()) return status;
  }
  return shape;
}

absl::Status CheckSame(absl::string_view field, const Shape& shape, const Shape& result) {
  if (shape == result) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", ToString(shape), "; it must be ", ToString(result)));
}

// As the server chooses it.
DataType DefaultOutput(DataType a) {
  if (a == kS8) return kS32;
  return a == kF8E4M3 || a == kF8E5M2 ? kF16 : a;
}

int64_t& LinesOf(Shape& shape) { return shape.layout == kColumnMajor ? shape.cols : shape.rows; }

// One product's part of an operand.
absl::StatusOr<Shape> OfOneProduct(const Product& product, Shape shape, bool shared,
                                   absl::string_view field) {
  if (shared) return shape;
  int64_t& lines = LinesOf(shape);
  if (lines % product.batch_count != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is ", ToString(shape), "; with batch_count ", product.batch_count,
                     " its ", shape.layout == kColumnMajor ? "columns" : "rows",
                     " must be a multiple of that, unless it is shared"));
  }
  lines /= product.batch_count;
  return shape;
}

// The matrix of as many products as the batch has.
absl::StatusOr<Shape> OfAllProducts(const Product& product, Shape shape, absl::string_view field) {
  int64_t& lines = LinesOf(shape);
  if (lines > std::numeric_limits<int64_t>::max() / product.batch_count) {
    return absl::InvalidArgumentError(absl::StrCat(field, " is ", product.batch_count,
                                                   " matrices of ", ToString(shape),
                                                   "; it must be smaller than 2^60 bytes"));
  }
  lines *= product.batch_count;
  if (absl::Status status = CheckShape(shape, field); !status.ok()) return status;
  return shape;
}

// The matrix of all products of a group, rows(size) x cols(size) for each, in the order of
// `layout`.
using SizeField = int64_t (*)(const ProductSize&);
absl::StatusOr<Shape> StackOf(const std::vector<ProductSize>& group, SizeField rows, SizeField cols,
                              DataType dtype, Layout layout, absl::string_view field) {
  const bool columns = layout == kColumnMajor;
  const SizeField lines = columns ? cols : rows;
  const SizeField elements = columns ? rows : cols;
  Shape all{.dtype = dtype, .layout = layout};
  int64_t& sum = LinesOf(all);
  int64_t& length = columns ? all.rows : all.cols;
  length = elements(group[0]);
  for (size_t i = 0; i < group.size(); ++i) {
    const absl::string_view what = columns ? "columns" : "rows";
    if (elements(group[i]) != length) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, " is ", columns ? "column-major" : "row-major", ", so that its ",
                       what, " would have ", length, " elements for group[0] and ",
                       elements(group[i]), " for group[", i, "]; they must have one length"));
    }
    const int64_t own = lines(group[i]);
    if (own < 0 || own > std::numeric_limits<int64_t>::max() - sum) {
      return absl::InvalidArgumentError(absl::StrCat(
          field, " has ", own, " ", what, " for group[", i,
          "]; they must be at least 0, and all together a matrix smaller than 2^60 bytes"));
    }
    sum += own;
  }
  return all;
}

int64_t M(const ProductSize& size) { return size.m; }
int64_t N(const ProductSize& size) { return size.n; }
int64_t K(const ProductSize& size) { return size.k; }

// One operand of a group; where all products share it, it is that of any of them.
absl::Status CheckStack(const Product& product, const Shape& shape, bool shared, SizeField rows,
                        SizeField cols, absl::string_view field) {
  std::vector<ProductSize> products = product.group;
  if (shared) products.resize(1);
  const absl::StatusOr<Shape> all = StackOf(products, rows, cols, shape.dtype, shape.layout, field);
  if (!all.ok()) return all.status();
  return CheckSame(field, shape, *all);
}

// Together the products must have something to compute.
absl::Status CheckNotEmpty(const std::vector<ProductSize>& group) {
  for (const auto& [name, extent] :
       {std::pair<const char*, SizeField>{"m", M}, {"n", N}, {"k", K}}) {
    const bool any =
        std::any_of(group.begin(), group.end(),
                    [&, of = extent](const ProductSize& size) { return of(size) != 0; });
    if (any) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", name, " of all products of the group is 0; their sum must be at least 1"));
  }
  return absl::OkStatus();
}

// The bias and which operands may be shared are for the server to check.
absl::StatusOr<std::optional<Shape>> ResultOfGroup(const Product& product,
                                                   const std::optional<Shape>& a,
                                                   const std::optional<Shape>& b) {
  absl::Status status = CheckNotEmpty(product.group);
  if (status.ok() && a) {
    status = CheckStack(product, *a, product.shared.a, product.transpose_a ? K : M,
                        product.transpose_a ? M : K, "a.shape");
  }
  if (status.ok() && b) {
    status = CheckStack(product, *b, product.shared.b, product.transpose_b ? N : K,
                        product.transpose_b ? K : N, "b.shape");
  }
  if (!status.ok()) return status;
  if (!a && !product.output_dtype) return std::optional<Shape>();
  const DataType dtype = product.output_dtype ? *product.output_dtype : DefaultOutput(a->dtype);
  const absl::StatusOr<Shape> result =
      StackOf(product.group, M, N, dtype, product.output_layout, "the result's shape");
  if (!result.ok()) return result.status();
  status = CheckShape(*result, "the result's shape");
  if (status.ok() && product.c) {
    const absl::StatusOr<std::optional<Shape>> c = KnownShape(*product.c, "c.shape");
    if (!c.ok()) return c.status();
    if (*c && !product.shared.c) status = CheckSame("c.shape", **c, *result);
  }
  if (!status.ok()) return status;
  return std::optional<Shape>(*result);
}

// c and bias against the result, of one product and of all.
absl::Status CheckAddends(const Product& product, const Shape& one, const Shape& result) {
  if (product.c) {
    absl::StatusOr<std::optional<Shape>> c = KnownShape(*product.c, "c.shape");
    if (!c.ok()) return c.status();
    if (*c) {
      const Shape& expected = product.shared.c ? one : result;
      if (absl::Status status = CheckSame("c.shape", **c, expected); !status.ok()) return status;
    }
  }
  if (product.bias) {
    absl::StatusOr<std::optional<Shape>> bias = KnownShape(*product.bias, "bias.shape");
    if (!bias.ok()) return bias.status();
    if (*bias) {
      const int64_t rows = product.shared.bias ? 1 : product.batch_count;
      // Of one line either layout says the same.
      const Shape expected{.rows = rows,
                           .cols = one.cols,
                           .dtype = one.dtype,
                           .layout = rows == 1 ? (*bias)->layout : kRowMajor};
      return CheckSame("bias.shape", **bias, expected);
    }
  }
  return absl::OkStatus();
}

}  // namespace

Resident Resident::Of(const MatrixInfo& info) {
  return {.id = info.id(), .shape = FromProto(info.shape())};
}

absl::StatusOr<std::optional<Shape>> ResultShape(const Product& product) {
  absl::StatusOr<std::optional<Shape>> known_a = KnownShape(product.a, "a.shape");
  if (!known_a.ok()) return known_a.status();
  absl::StatusOr<std::optional<Shape>> known_b = KnownShape(product.b, "b.shape");
  if (!known_b.ok()) return known_b.status();
  if (product.batch_count < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_count is ", product.batch_count, "; it must be at least 1"));
  }
  if (!product.group.empty()) return ResultOfGroup(product, *known_a, *known_b);
  if (!*known_a || !*known_b) return std::optional<Shape>();
  const absl::StatusOr<Shape> one_a = OfOneProduct(product, **known_a, product.shared.a, "a.shape");
  if (!one_a.ok()) return one_a.status();
  const absl::StatusOr<Shape> one_b = OfOneProduct(product, **known_b, product.shared.b, "b.shape");
  if (!one_b.ok()) return one_b.status();
  const Shape &a = *one_a, &b = *one_b;
  const int64_t inner_a = product.transpose_a ? a.rows : a.cols;
  const int64_t inner_b = product.transpose_b ? b.cols : b.rows;
  if (inner_a != inner_b) {
    return absl::InvalidArgumentError(absl::StrCat("op(a) has ", inner_a, " columns and op(b) has ",
                                                   inner_b, " rows; they must be the same"));
  }
  const Shape one{.rows = product.transpose_a ? a.cols : a.rows,
                  .cols = product.transpose_b ? b.rows : b.cols,
                  .dtype = product.output_dtype.value_or(DefaultOutput(a.dtype)),
                  .layout = product.output_layout};
  const absl::StatusOr<Shape> result = OfAllProducts(product, one, "the result's shape");
  if (!result.ok()) return result.status();
  if (absl::Status status = CheckAddends(product, one, *result); !status.ok()) return status;
  return std::optional<Shape>(*result);
}

}  // namespace gemmd::client
