#include "tests/kernels/row_block_case.h"

#include <algorithm>
#include <sstream>

namespace gemm::testing {
namespace {

// Rows [first, first + rows) of the product, as a case of its own.
ProductData BlockOf(const ProductData& whole, int64_t first, int64_t rows) {
  ProductCase product = whole.product;
  product.problem.m = rows;
  ProductData block(product);
  if (product.problem.trans_a) {
    for (int64_t l = 0; l < product.problem.k; ++l) {
      for (int64_t i = 0; i < rows; ++i) block.a.Set(l, i, whole.a.At(l, first + i));
    }
  } else {
    block.a.CopyRows(whole.a, first);
  }
  block.b.CopyRows(whole.b, 0);
  block.c.CopyRows(whole.c, first);
  block.bias.CopyRows(whole.bias, 0);
  if (product.c_is_d) block.d.CopyRows(block.c, 0);
  return block;
}

}  // namespace

ProductCase RandomRowsCase(const Types& types, int64_t m, int64_t n, int64_t k,
                           std::mt19937_64& random) {
  ProductCase product = RandomCase(types, m, n, k, random);
  if (product.problem.bias == BiasAxis::kRows) product.problem.bias = BiasAxis::kColumns;
  return product;
}

std::string CheckRowBlocksOf(const Kernel& kernel, const ProductCase& whole, const Runner& run,
                             int64_t block_rows) {
  const ProductData before(whole);
  ProductData data = before;
  std::ostringstream wrong;
  if (const absl::Status status = run(kernel, data); !status.ok()) wrong << status << "; ";
  const int64_t m = whole.problem.m;
  for (int64_t first = 0; first < m && wrong.str().empty(); first += block_rows) {
    ProductData block = BlockOf(before, first, std::min(block_rows, m - first));
    if (const absl::Status status = run(kernel, block); !status.ok()) {
      wrong << "rows from " << first << ": " << status << "; ";
      break;
    }
    GuardedMatrix rows = block.d;
    rows.CopyRows(data.d, first);
    if (rows.bytes() != block.d.bytes()) wrong << "rows from " << first << " have other bits; ";
  }
  if (wrong.str().empty()) return "";
  wrong << "kernel " << kernel.name << ", blocks of " << block_rows << " rows, case " << whole;
  return wrong.str();
}

}  // namespace gemm::testing
