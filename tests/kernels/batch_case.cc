#include "tests/kernels/batch_case.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace gemm::testing {
namespace {

// Product `i` of the batch, as a case of its own.
ProductData Alone(const ProductData& batch, int64_t i) {
  ProductCase product = batch.product;
  product.problem.batch = 1;
  product.shared = {};
  ProductData alone(product);
  const auto take = [i](const GuardedMatrix& from, bool shared, GuardedMatrix& to) {
    to.CopyRows(from, shared ? 0 : i * to.rows());
  };
  const SharedMatrices& shared = batch.product.shared;
  take(batch.a, shared.a, alone.a);
  take(batch.b, shared.b, alone.b);
  take(batch.c, shared.c, alone.c);
  take(batch.bias, shared.bias, alone.bias);
  if (product.c_is_d) alone.d.CopyRows(alone.c, 0);
  return alone;
}

}  // namespace

ProductCase RandomBatch(const Types& types, int64_t m, int64_t n, int64_t k, int64_t batch,
                        std::mt19937_64& random) {
  ProductCase product = RandomCase(types, m, n, k, random);
  product.problem.batch = batch;
  const auto third = [&random] { return random() % 3 == 0; };
  product.shared = {.a = third(), .b = third(), .c = third(), .bias = third()};
  if (product.shared.c) product.c_is_d = false;
  return product;
}

std::string CheckBatchOf(const Kernel& kernel, const ProductCase& batch, const Runner& run,
                         int64_t most_alone) {
  const ProductData before(batch);
  ProductData data = before;
  std::ostringstream wrong;
  if (const absl::Status status = run(kernel, data); !status.ok()) wrong << status << "; ";
  if (!data.d.GuardIntact()) wrong << "bytes beside D's elements changed; ";
  if (data.a.bytes() != before.a.bytes() || data.b.bytes() != before.b.bytes() ||
      data.c.bytes() != before.c.bytes() || data.bias.bytes() != before.bias.bytes()) {
    wrong << "an operand changed; ";
  }
  const int64_t products = batch.problem.batch;
  const int64_t step = std::max<int64_t>(1, products / most_alone);
  for (int64_t i = 0; i < products && wrong.str().empty(); i += step) {
    // The last one, too.
    const int64_t at = i + step < products ? i : products - 1;
    ProductData alone = Alone(before, at);
    if (const absl::Status status = run(kernel, alone); !status.ok()) {
      wrong << "product " << at << " alone: " << status << "; ";
    } else if (!alone.d.IsRowsOf(data.d, at * batch.problem.m)) {
      wrong << "product " << at << " has other bits than alone; ";
    }
  }
  if (wrong.str().empty()) return "";
  const SharedMatrices& shared = batch.shared;
  wrong << "kernel " << kernel.name << ", batch of " << products << ", shared"
        << (shared.a ? " a" : "") << (shared.b ? " b" : "") << (shared.c ? " c" : "")
        << (shared.bias ? " bias" : "") << ", case " << batch;
  return wrong.str();
}

}  // namespace gemm::testing
