#include "tests/kernels/group_case.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <sstream>

#include "absl/strings/str_join.h"

namespace gemm::testing {
namespace {

constexpr int64_t kSamples = 500;

bool Third(std::mt19937_64& random) { return random() % 3 == 0; }

// Makes `product` a group whose m or k is the sum of the extents.
void SetExtents(ProductCase& product, GroupedBy by, const std::vector<int64_t>& extents) {
  product.extents = std::make_shared<const std::vector<int64_t>>(extents);
  product.problem.grouped = by;
  product.problem.extents = *product.extents;
}

int64_t Sum(const std::vector<int64_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t{0});
}

// The elements of a row vector, from `first` on.
void CopyElements(GuardedMatrix& to, const GuardedMatrix& from, int64_t first) {
  for (int64_t j = 0; j < to.cols(); ++j) to.Set(0, j, from.At(0, first + j));
}

// Product `index` of the group as a case of its own. `first` is the sum of the extents before it.
ProductData Alone(const ProductData& group, int64_t index, int64_t first) {
  ProductCase product = group.product;
  Problem& p = product.problem;
  const GroupedBy by = p.grouped;
  p = ProductOfGroup(p, {}, index, first).problem;
  product.extents = nullptr;
  product.shared = {};
  // With a k of 0, A and B are not read.
  const bool reads_factors = p.k > 0;
  if (!reads_factors) {
    p.k = 1;
    p.alpha = 0;
  }
  ProductData alone(product);
  const bool by_m = by == GroupedBy::kM;
  const SharedMatrices& shared = group.product.shared;
  const auto of_each = [index](GuardedMatrix& to, const GuardedMatrix& from, bool is_shared) {
    to.CopyRows(from, is_shared ? 0 : index * to.rows());
  };
  if (reads_factors) {
    alone.a.CopyRows(group.a, first);
    if (by_m) {
      of_each(alone.b, group.b, shared.b);
    } else {
      alone.b.CopyRows(group.b, first);
    }
  }
  if (by_m) {
    alone.c.CopyRows(group.c, first);
  } else {
    of_each(alone.c, group.c, shared.c);
  }
  if (by_m && p.bias == BiasAxis::kRows) {
    CopyElements(alone.bias, group.bias, first);
  } else {
    of_each(alone.bias, group.bias, shared.bias);
  }
  if (product.c_is_d) alone.d.CopyRows(alone.c, 0);
  return alone;
}

// The fault of product `index` of the group that ran; empty if it is right.
std::string CheckOne(const Kernel& kernel, const ProductData& before, const ProductData& after,
                     const Runner& run, int64_t index, int64_t first) {
  ProductData alone = Alone(before, index, first);
  std::ostringstream wrong;
  if (const absl::Status status = run(kernel, alone); !status.ok()) {
    wrong << "product " << index << " alone: " << status << "; ";
    return wrong.str();
  }
  const Problem& p = alone.product.problem;
  const bool by_m = before.product.problem.grouped == GroupedBy::kM;
  if (!alone.d.IsRowsOf(after.d, by_m ? first : index * p.m)) {
    wrong << "product " << index << " has other bits than alone; ";
  }
  const Agreement agreement = CompareWithReference(p, alone.ForReference(), alone.product.elements,
                                                   kSamples, alone.product.seed);
  if (!(agreement.worst_ratio <= 1)) {
    wrong << "product " << index << " alone has an error of " << agreement.worst_ratio
          << " of the bound; ";
  }
  return wrong.str();
}

}  // namespace

ProductCase RandomGroupByM(const Types& types, const std::vector<int64_t>& extents, int64_t n,
                           int64_t k, std::mt19937_64& random) {
  ProductCase product = RandomCase(types, Sum(extents), n, k, random);
  product.problem.trans_a = false;
  SetExtents(product, GroupedBy::kM, extents);
  product.shared = {.b = Third(random), .bias = Third(random)};
  return product;
}

ProductCase RandomGroupByK(const Types& types, int64_t m, int64_t n,
                           const std::vector<int64_t>& extents, std::mt19937_64& random) {
  ProductCase product = RandomCase(types, m, n, Sum(extents), random);
  product.problem.trans_a = true;
  product.problem.trans_b = false;
  SetExtents(product, GroupedBy::kK, extents);
  product.shared = {.c = Third(random), .bias = Third(random)};
  if (product.shared.c) product.c_is_d = false;
  return product;
}

std::vector<int64_t> RandomExtents(size_t products, int64_t largest, std::mt19937_64& random) {
  std::uniform_int_distribution<int64_t> rows(1, largest);
  std::vector<int64_t> extents;
  for (size_t i = 0; i < products; ++i) {
    switch (random() % 4) {
      case 0:
        extents.push_back(0);
        break;
      case 1:
        extents.push_back(extents.empty() ? largest : extents.back());
        break;
      default:
        extents.push_back(rows(random));
    }
  }
  if (Sum(extents) == 0) extents.back() = largest;
  return extents;
}

std::string CheckGroupOf(const Kernel& kernel, const ProductCase& group, const Runner& run,
                         int64_t most_alone) {
  const ProductData before(group);
  ProductData data = before;
  std::ostringstream wrong;
  if (const absl::Status status = run(kernel, data); !status.ok()) wrong << status << "; ";
  if (!data.d.GuardIntact()) wrong << "bytes beside D's elements changed; ";
  if (data.a.bytes() != before.a.bytes() || data.b.bytes() != before.b.bytes() ||
      data.c.bytes() != before.c.bytes() || data.bias.bytes() != before.bias.bytes()) {
    wrong << "an operand changed; ";
  }
  const absl::Span<const int64_t> extents = group.problem.extents;
  const auto products = static_cast<int64_t>(extents.size());
  const int64_t step = std::max<int64_t>(1, products / most_alone);
  int64_t first = 0;
  for (int64_t i = 0; i < products && wrong.str().empty(); ++i) {
    const int64_t extent = extents[static_cast<size_t>(i)];
    const bool has_rows = group.problem.grouped == GroupedBy::kK || extent > 0;
    if (has_rows && (i % step == 0 || i == products - 1)) {
      wrong << CheckOne(kernel, before, data, run, i, first);
    }
    first += extent;
  }
  if (wrong.str().empty()) return "";
  const SharedMatrices& shared = group.shared;
  wrong << "kernel " << kernel.name << ", group by "
        << (group.problem.grouped == GroupedBy::kM ? "m" : "k") << " of "
        << absl::StrJoin(extents, " ") << ", shared" << (shared.b ? " b" : "")
        << (shared.c ? " c" : "") << (shared.bias ? " bias" : "") << ", case " << group;
  return wrong.str();
}

}  // namespace gemm::testing
