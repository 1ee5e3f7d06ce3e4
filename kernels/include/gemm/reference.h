// The oracle: products in double precision on the host, and error bounds for kernels of
// given types.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "gemm/problem.h"

namespace gemm {

// An element of the exact result, and the largest error that a right kernel may make.
struct Expected {
  double value;
  double tolerance;
};

// The assumption about the elements of A and B.
enum class Elements : uint8_t {
  // None: the bound is the worst case.
  kAny,
  // The elements of A are drawn independently of those of B. In one of the two, elements are
  // independent of each other and either sign is equally likely: IsSymmetric of gemm/generate.h.
  // The bound is the smaller of the worst case and one that a right kernel exceeds with a
  // probability of less than 1e-7 an element.
  kDrawn,
  // Integers, also in C and the bias, with powers of two as factors, so small that every type holds
  // every partial sum. Every order of the additions then gives the same D: the exact value, rounded
  // once. The tolerance is 0. A GELU is not exact: with it the bound is that of kAny.
  kExact,
};

// Element (i, j) of D in double precision from host operands, with the bound
//
//   |alpha| (the accumulation's error) + roundings of alpha, beta C, bias and the activation + the
//   rounding to D's type,
//
// plus the smallest subnormal of D. With u the unit roundoff of the accumulation, the error of k
// additions is at most k u (|A||B|)_ij. For drawn elements it is 36 sqrt(k) u times the root of the
// sum of squared products, or 6 k u times that root where tensor cores truncate. Further errors are
// added: for TF32, 2^-10 of each operand; for f32x3, 2^-21 of each product and the truncation of 32
// products by tensor cores; for fp8, the loss of 128 products by tensor cores.
// Block scales cost two roundings of each block's sum.
// Integer accumulators lose nothing and wrap as they must: the tolerance of an s32 D is 0.
// kernels/reference/error_bound.h has the derivation.
// The bound is infinite where an accumulator may overflow. It is 0, or the error of rounding to D's
// type, where NaN or infinities of the operands decide the element. Scalars are as in
// gemm/scalars.h. `host.c` is C before the product, even if the kernel had C == D.
Expected ExpectedElement(const Problem& problem, const Operands& host, Elements elements, int64_t i,
                         int64_t j);

// The same for several elements of one product. Converts each row of A and each column of B once,
// as long as they fit into 32 MiB on each side. Borrows the operands. Not thread-safe.
class ExpectedElements {
 public:
  ExpectedElements(const Problem& problem, const Operands& host, Elements elements);
  ~ExpectedElements();
  ExpectedElements(const ExpectedElements&) = delete;
  ExpectedElements& operator=(const ExpectedElements&) = delete;

  Expected At(int64_t i, int64_t j);

 private:
  struct Lines;
  const Problem problem_;
  const Operands& host_;
  const Elements elements_;
  const std::unique_ptr<Lines> lines_;
};

// The worst |D - value| / tolerance over all elements, or over `max_samples` of them if there are
// more. The samples are drawn from `seed` and include corners and edges. An unexpected NaN counts
// as infinite. A right kernel has at most 1.
struct Agreement {
  double worst_ratio = 0;
  double worst_absolute_error = 0;
  int64_t worst_row = 0;
  int64_t worst_col = 0;
  // The value of that element in D, and the expected one.
  double worst_value = 0;
  double worst_expected = 0;
  int64_t checked = 0;
  // The checked elements that must be NaN or infinite.
  int64_t not_finite = 0;
  // The root mean square of the tolerances divided by that of the values. An error below this share
  // of a typical element goes unseen. 0.01 is fine. At 1 only values that are far too large are
  // seen, at infinity none. Elements that must be NaN or infinite do not count.
  double resolution = 0;

  bool none_finite() const { return checked > 0 && not_finite == checked; }
};
Agreement CompareWithReference(const Problem& problem, const Operands& host, Elements elements,
                               int64_t max_samples, uint64_t seed);

// Reads an element of host memory as a double, and stores a double rounded to `type` (through f32
// for the 16- and 8-bit types, to nearest even).
double LoadElement(const void* data, int64_t index, DType type);
void StoreElement(void* data, int64_t index, DType type, double value);
// The stored value, as a double.
double RoundedElement(double value, DType type);

// Largest finite magnitude of a type.
double LargestFinite(DType type);

}  // namespace gemm
