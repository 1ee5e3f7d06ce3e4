// The oracle: products in double precision on the host, and error bounds for kernels of
// given types.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "gemm/problem.h"

namespace gemm {

// An element of the exact result, and the largest error of a right kernel.
struct Expected {
  double value;
  double tolerance;
};

// Element (i, j) of D in double precision from host operands, with the bound
//
//   gamma_k |alpha| (|A||B|)_ij + roundings of alpha, beta C, bias and the
//   activation + the rounding to D's type,
//
// gamma_k = k u / (1 - k u) with u the unit roundoff of the accumulation
// (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), plus
// 2 u of TF32 for its rounded operands or what tensor cores lose of 128 products
// of fp8, plus the smallest subnormal of D.
// Where k u >= 1/4 (long f16 accumulations) the bound is the probabilistic one of Higham
// and Mary (2019), with sqrt(k). The bound allows for tensor cores that truncate. It is
// infinite where an accumulator may overflow. Where NaN or infinities of the operands
// decide the element it is 0, or the error of rounding to D's type. Scalars are as in
// gemm/scalars.h. `host.c` is C as it was before the product, also where the kernel had
// C == D.
Expected ExpectedElement(const Problem& problem, const Operands& host, int64_t i, int64_t j);

// The same for several elements of one product. Converts a row of A and a column of B
// once for all of their elements, as long as they fit into 32 MiB on each side. Borrows
// the operands. Not thread-safe.
class ExpectedElements {
 public:
  ExpectedElements(const Problem& problem, const Operands& host);
  ~ExpectedElements();
  ExpectedElements(const ExpectedElements&) = delete;
  ExpectedElements& operator=(const ExpectedElements&) = delete;

  Expected At(int64_t i, int64_t j);

 private:
  struct Lines;
  const Problem problem_;
  const Operands& host_;
  const std::unique_ptr<Lines> lines_;
};

// The worst |D - value| / tolerance over all elements, or over `max_samples` of them where
// there are more. The samples are drawn from `seed` and include corners and edges. An
// unexpected NaN counts as infinite. A right kernel has at most 1.
struct Agreement {
  double worst_ratio = 0;
  double worst_absolute_error = 0;
  int64_t worst_row = 0;
  int64_t worst_col = 0;
  int64_t checked = 0;
};
Agreement CompareWithReference(const Problem& problem, const Operands& host, int64_t max_samples,
                               uint64_t seed);

// Element of host memory as a double, and the rounding of a double to `type`
// (through f32 for the 16- and 8-bit types, to nearest even).
double LoadElement(const void* data, int64_t index, DType type);
void StoreElement(void* data, int64_t index, DType type, double value);
// The stored value, as a double.
double RoundedElement(double value, DType type);

// Largest finite magnitude of a type.
double LargestFinite(DType type);

}  // namespace gemm
