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

// What is known of the elements of A and B.
enum class Elements : uint8_t {
  // Nothing: the bound is the worst case.
  kAny,
  // Those of A and B are drawn independently of each other, and those of one of them
  // independently with either sign alike: IsSymmetric of gemm/generate.h. The bound is the
  // smaller of the worst case and one that a right kernel exceeds with a probability of less
  // than 1e-7 an element.
  kDrawn,
  // Integers, also those of C and the bias, with powers of two as factors, so small that every
  // type holds every partial sum. Each order of the additions then gives the same D: the exact
  // value, rounded once. The tolerance is 0. With a GELU, which is not exact, as kAny.
  kExact,
};

// Element (i, j) of D in double precision from host operands, with the bound
//
//   |alpha| (what the accumulation may lose) + roundings of alpha, beta C, bias and the
//   activation + the rounding to D's type,
//
// plus the smallest subnormal of D. What k additions may lose is k u (|A||B|)_ij, or for
// drawn elements 36 sqrt(k) u times the root of the sum of squared products (6 k u times it
// where tensor cores truncate), with u the unit roundoff of the accumulation. TF32 loses
// 2^-10 of each operand besides, f32x3 2^-21 of each product and what tensor cores truncate of 32,
// and tensor cores what they lose of 128 products of fp8.
// Block scales cost two roundings of each block's sum.
// Integer accumulators lose nothing and wrap as they must: the tolerance of an s32 D is 0.
// kernels/reference/error_bound.h has the derivation.
// The bound is infinite where an accumulator may overflow. Where NaN or infinities of the
// operands decide the element it is 0, or the error of rounding to D's type. Scalars are as
// in gemm/scalars.h. `host.c` is C as it was before the product, also where the kernel had
// C == D.
Expected ExpectedElement(const Problem& problem, const Operands& host, Elements elements, int64_t i,
                         int64_t j);

// The same for several elements of one product. Converts a row of A and a column of B
// once for all of their elements, as long as they fit into 32 MiB on each side. Borrows
// the operands. Not thread-safe.
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

// The worst |D - value| / tolerance over all elements, or over `max_samples` of them where
// there are more. The samples are drawn from `seed` and include corners and edges. An
// unexpected NaN counts as infinite. A right kernel has at most 1.
struct Agreement {
  double worst_ratio = 0;
  double worst_absolute_error = 0;
  int64_t worst_row = 0;
  int64_t worst_col = 0;
  // Of that element: what D has, and what it should have.
  double worst_value = 0;
  double worst_expected = 0;
  int64_t checked = 0;
  // Of those, elements that must be NaN or infinite.
  int64_t not_finite = 0;
  // The root mean square of the tolerances over that of the values: errors of an element
  // below this share of a typical element are not seen. 0.01 is fine, 1 sees nothing but
  // what is far too large, and infinity nothing at all. Elements that must be NaN or infinite have
  // no part in it.
  double resolution = 0;

  bool none_finite() const { return checked > 0 && not_finite == checked; }
};
Agreement CompareWithReference(const Problem& problem, const Operands& host, Elements elements,
                               int64_t max_samples, uint64_t seed);

// Element of host memory as a double, and the rounding of a double to `type`
// (through f32 for the 16- and 8-bit types, to nearest even).
double LoadElement(const void* data, int64_t index, DType type);
void StoreElement(void* data, int64_t index, DType type, double value);
// The stored value, as a double.
double RoundedElement(double value, DType type);

// Largest finite magnitude of a type.
double LargestFinite(DType type);

}  // namespace gemm
