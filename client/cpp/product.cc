#include "gemmd/client/product.h"

#include <utility>

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

// c and bias against the result.
absl::Status CheckAddends(const Product& product, const Shape& result) {
  if (product.c) {
    absl::StatusOr<std::optional<Shape>> c = KnownShape(*product.c, "c.shape");
    if (!c.ok()) return c.status();
    if (*c) {
      if (absl::Status status = CheckSame("c.shape", **c, result); !status.ok()) return status;
    }
  }
  if (product.bias) {
    absl::StatusOr<std::optional<Shape>> bias = KnownShape(*product.bias, "bias.shape");
    if (!bias.ok()) return bias.status();
    if (*bias) {
      // One line: either layout says the same.
      const Shape expected{
          .rows = 1, .cols = result.cols, .dtype = result.dtype, .layout = (*bias)->layout};
      return CheckSame("bias.shape", **bias, expected);
    }
  }
  return absl::OkStatus();
}

// As the server chooses it.
DataType DefaultOutput(DataType a) { return a == kF8E4M3 || a == kF8E5M2 ? kF16 : a; }

}  // namespace

Resident Resident::Of(const MatrixInfo& info) {
  return {.id = info.id(), .shape = FromProto(info.shape())};
}

absl::StatusOr<std::optional<Shape>> ResultShape(const Product& product) {
  absl::StatusOr<std::optional<Shape>> known_a = KnownShape(product.a, "a.shape");
  if (!known_a.ok()) return known_a.status();
  absl::StatusOr<std::optional<Shape>> known_b = KnownShape(product.b, "b.shape");
  if (!known_b.ok()) return known_b.status();
  if (!*known_a || !*known_b) return std::optional<Shape>();
  const Shape& a = **known_a;
  const Shape& b = **known_b;
  const int64_t inner_a = product.transpose_a ? a.rows : a.cols;
  const int64_t inner_b = product.transpose_b ? b.cols : b.rows;
  if (inner_a != inner_b) {
    return absl::InvalidArgumentError(absl::StrCat("op(a) has ", inner_a, " columns and op(b) has ",
                                                   inner_b, " rows; they must be the same"));
  }
  const Shape result{.rows = product.transpose_a ? a.cols : a.rows,
                     .cols = product.transpose_b ? b.rows : b.cols,
                     .dtype = product.output_dtype.value_or(DefaultOutput(a.dtype)),
                     .layout = product.output_layout};
  if (absl::Status status = CheckShape(result, "the result's shape"); !status.ok()) return status;
  if (absl::Status status = CheckAddends(product, result); !status.ok()) return status;
  return std::optional<Shape>(result);
}

}  // namespace gemmd::client
