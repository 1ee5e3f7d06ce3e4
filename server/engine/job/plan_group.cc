// The sizes of a group: which dimension its products are stacked in, and the matrices that this
// asks for.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/job/plan.h"

namespace gemmd {
namespace {

enum class Dim : uint8_t { kM, kN, kK };
constexpr Dim kDims[] = {Dim::kM, Dim::kN, Dim::kK};

// Neither the sum of so many nor their product with the largest group leaves 64 bits.
constexpr int64_t kLongest = int64_t{1} << 48;
static_assert(kLongest <= (int64_t{1} << 60) / gemm::kMaxGroup);

absl::string_view Name(Dim dim) {
  switch (dim) {
    case Dim::kM:
      return "m";
    case Dim::kN:
      return "n";
    case Dim::kK:
      return "k";
  }
  return "";
}

int64_t Of(const ProductSize& size, Dim dim) {
  switch (dim) {
    case Dim::kM:
      return size.m;
    case Dim::kN:
      return size.n;
    case Dim::kK:
      return size.k;
  }
  return 0;
}

std::string ToString(const ProductSize& size) {
  return absl::StrCat(size.m, "x", size.n, "x", size.k);
}

// A matrix of the product: which dimensions its lines and the elements of a line are.
struct Matrix {
  absl::string_view name;
  Dim lines;
  Dim elements;
  bool column_major;

  bool Has(Dim dim) const { return lines == dim || elements == dim; }
};

Matrix MatrixOf(absl::string_view name, Dim rows, Dim cols, bool column_major) {
  return {name, column_major ? cols : rows, column_major ? rows : cols, column_major};
}

// A, B and the result, as they are stored.
using Matrices = std::array<Matrix, 3>;

Matrices MatricesOf(const JobSpec& spec, const Shape& a, const Shape& b) {
  Dim of_a[] = {Dim::kM, Dim::kK}, of_b[] = {Dim::kK, Dim::kN};
  if (spec.transpose_a) std::swap(of_a[0], of_a[1]);
  if (spec.transpose_b) std::swap(of_b[0], of_b[1]);
  return {MatrixOf("a", of_a[0], of_a[1], a.column_major),
          MatrixOf("b", of_b[0], of_b[1], b.column_major),
          MatrixOf("the result", Dim::kM, Dim::kN, spec.output_column_major)};
}

absl::Status CheckSizes(const std::vector<ProductSize>& group) {
  if (group.size() > static_cast<size_t>(gemm::kMaxGroup)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "group has ", group.size(), " products, but may have at most ", gemm::kMaxGroup));
  }
  for (size_t i = 0; i < group.size(); ++i) {
    for (const Dim dim : kDims) {
      const int64_t size = Of(group[i], dim);
      if (size >= 0 && size <= kLongest) continue;
      return absl::InvalidArgumentError(absl::StrCat("group[", i, "].", Name(dim), " is ", size,
                                                     ", but must be from 0 to ", kLongest));
    }
  }
  return absl::OkStatus();
}

// A dimension in which the products differ, and the first that differs from group[0].
struct Difference {
  Dim dim;
  size_t product;
};

// Nullopt where all have one size.
absl::StatusOr<std::optional<Difference>> DifferenceOf(const std::vector<ProductSize>& group) {
  std::optional<Difference> found;
  for (size_t i = 1; i < group.size(); ++i) {
    for (const Dim dim : kDims) {
      if (Of(group[i], dim) == Of(group[0], dim)) continue;
      if (!found.has_value()) found = Difference{dim, i};
      if (found->dim == dim) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "group[0] is ", ToString(group[0]), " (m x n x k), but group[", found->product,
          "] differs from it in ", Name(found->dim), " (", ToString(group[found->product]),
          "), and group[", i, "] in ", Name(dim), " (", ToString(group[i]),
          "): the products of a group may differ in one dimension; send the others apart"));
    }
  }
  return found;
}

// The products differ in a dimension that is not the lines of `matrix`.
absl::Status LinesDiffer(const Matrix& matrix, const std::vector<ProductSize>& group,
                         const Difference& difference) {
  const absl::string_view lines = matrix.column_major ? "columns" : "rows";
  const absl::string_view order = matrix.column_major ? "column-major" : "row-major";
  const std::string remedy =
      matrix.name == "the result"
          ? std::string("ask for the other output_layout")
          : absl::StrCat("store it the other way, ",
                         matrix.column_major ? "row-major" : "column-major",
                         " or as its transpose with transpose_", matrix.name);
  return absl::InvalidArgumentError(
      absl::StrCat(matrix.name, " is ", order, ", so that its ", lines, " would have ",
                   Of(group[0], difference.dim), " elements for group[0] and ",
                   Of(group[difference.product], difference.dim), " for group[", difference.product,
                   "], but the ", lines, " of a matrix have one length: ", remedy,
                   ", or send the products one by one"));
}

// The dimension that both matrices that have it have as their lines: there is at most one.
std::optional<Dim> StackedIn(const Matrices& matrices) {
  for (const Dim dim : kDims) {
    const bool stacked = std::all_of(matrices.begin(), matrices.end(), [dim](const Matrix& matrix) {
      return !matrix.Has(dim) || matrix.lines == dim;
    });
    if (stacked) return dim;
  }
  return std::nullopt;
}

absl::StatusOr<Dim> ChooseDim(const Matrices& matrices, const std::vector<ProductSize>& group) {
  const absl::StatusOr<std::optional<Difference>> difference = DifferenceOf(group);
  if (!difference.ok()) return difference.status();
  if (difference->has_value()) {
    const Dim dim = (*difference)->dim;
    for (const Matrix& matrix : matrices) {
      if (matrix.elements == dim) return LinesDiffer(matrix, group, **difference);
    }
    return dim;
  }
  if (const std::optional<Dim> dim = StackedIn(matrices)) return *dim;
  return absl::InvalidArgumentError(absl::StrCat(
      "the lines of a are its ", Name(matrices[0].lines), ", those of b its ",
      Name(matrices[1].lines), " and those of the result its ", Name(matrices[2].lines),
      ", but a group is stacked in one dimension: in the m of a and the result, the n of b and "
      "the result, or the k of a and b; products of one size may be a batch (batch_count)"));
}

// The sum over all products.
absl::StatusOr<int64_t> SumOf(const std::vector<ProductSize>& group, Dim by) {
  for (const Dim dim : kDims) {
    if (dim == by || Of(group[0], dim) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the ", Name(dim), " of the group's products is 0, but must be at least 1: ", "only their ",
        Name(by), ", in which they are stacked, may be 0"));
  }
  int64_t sum = 0;
  for (const ProductSize& size : group) sum += Of(size, by);
  if (sum > 0) return sum;
  return absl::InvalidArgumentError(
      absl::StrCat("the ", Name(by), " of all products of the group is 0, but their sum must be ",
                   "at least 1: there is nothing to compute"));
}

// A group of one product shares nothing.
bool Shares(const JobSpec& spec, Role role) { return spec.group.size() > 1 && spec.shared[role]; }

absl::Status CheckShared(const JobSpec& spec, Dim by) {
  constexpr std::pair<Role, std::array<Dim, 2>> kOfRole[] = {{Role::kA, {Dim::kM, Dim::kK}},
                                                             {Role::kB, {Dim::kK, Dim::kN}},
                                                             {Role::kC, {Dim::kM, Dim::kN}},
                                                             {Role::kBias, {Dim::kN, Dim::kN}}};
  for (const auto& [role, dims] : kOfRole) {
    if (!Shares(spec, role) || (dims[0] != by && dims[1] != by)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("shared_operands names ", Name(role), ", but ", Name(role), " has the ",
                     Name(by), " in which the products of the group are stacked: leave it out"));
  }
  return absl::OkStatus();
}

// The matrix of all products, or the one that they share. `sums` is the size of one product, with
// the sum of all in the dimension `by`.
Shape StackOf(const Matrix& matrix, const ProductSize& sums, Dim by, size_t matrices,
              gemm::DType type) {
  int64_t lines = Of(sums, matrix.lines);
  if (matrix.lines != by) lines *= static_cast<int64_t>(matrices);
  const int64_t elements = Of(sums, matrix.elements);
  return {matrix.column_major ? elements : lines, matrix.column_major ? lines : elements, type,
          matrix.column_major};
}

absl::Status CheckFactor(const JobSpec& spec, const Matrix& matrix, Role role, const Shape& shape,
                         const ProductSize& sums, Dim by) {
  const size_t products = spec.group.size();
  const bool shared = Shares(spec, role);
  const Shape must = StackOf(matrix, sums, by, shared ? 1 : products, shape.type);
  if (shape == must) return absl::OkStatus();
  const std::string why =
      matrix.lines == by
          ? absl::StrCat("its ", shape.column_major ? "columns" : "rows", " are the ", Name(by),
                         " of all ", products, " products of the group")
      : shared ? std::string("shared by the products of the group")
               : absl::StrCat("one matrix for each of the ", products,
                              " products of the group, unless shared_operands names it");
  return absl::InvalidArgumentError(absl::StrCat(matrix.name, " is ", gemmd::ToString(shape),
                                                 ", but must be ", must.rows, "x", must.cols, ": ",
                                                 why));
}

}  // namespace

absl::Status PlanGroup(const JobSpec& spec, const OperandShapes& shapes, Plan& plan) {
  const Shape &a = *shapes[Role::kA], &b = *shapes[Role::kB];
  const std::vector<ProductSize>& group = spec.group;
  if (absl::Status status = CheckSizes(group); !status.ok()) return status;
  const Matrices matrices = MatricesOf(spec, a, b);
  const absl::StatusOr<Dim> by = ChooseDim(matrices, group);
  if (!by.ok()) return by.status();
  const absl::StatusOr<int64_t> sum = SumOf(group, *by);
  if (!sum.ok()) return sum.status();
  const ProductSize sums = {.m = *by == Dim::kM ? *sum : group[0].m,
                            .n = *by == Dim::kN ? *sum : group[0].n,
                            .k = *by == Dim::kK ? *sum : group[0].k};

  absl::Status status = CheckShared(spec, *by);
  if (status.ok()) status = CheckFactor(spec, matrices[0], Role::kA, a, sums, *by);
  if (status.ok()) status = CheckFactor(spec, matrices[1], Role::kB, b, sums, *by);
  plan.m = sums.m;
  plan.n = sums.n;
  plan.k = sums.k;
  plan.result = StackOf(matrices[2], sums, *by, group.size(),
                        spec.output_type.value_or(DefaultOutput(a.type)));
  if (status.ok()) status = CheckShape(plan.result, "the result");
  if (!status.ok()) return status;
  std::vector<int64_t> extents;
  extents.reserve(group.size());
  for (const ProductSize& size : group) extents.push_back(Of(size, *by));
  plan.extents = std::make_shared<const std::vector<int64_t>>(std::move(extents));
  plan.problem.extents = *plan.extents;
  // A group by n has a column-major result, and kernels see its transpose.
  plan.problem.grouped = *by == Dim::kK ? gemm::GroupedBy::kK : gemm::GroupedBy::kM;
  return absl::OkStatus();
}

}  // namespace gemmd
