// How far sums of fp8 products are off in the mean. The bound of a single element
// (kernels/reference/error_bound.h) has room for a kernel that never promotes, since it allows for
// errors that all point one way.
//
// A tensor core adds 32 products to a sum at a time. It aligns them to the largest of all and
// truncates each to 13 bits behind the first. A row promotes after 128 products, so their sum stays
// small, and so does what is cut off. The signs of different sums of 128 are independent: relative
// to D the error is the same for any k. Without a promotion it grows with k.
//
// For elements drawn from [-1, 1) that arithmetic gives 1.0e-4 at any k, and without a promotion
// 2.7e-3 at k = 16384 (fp8_sums_test.cc). The bound is between.
#pragma once

#include <cstdint>

namespace gemm::testing {

inline constexpr int64_t kFp8Step = 32;       // products that a tensor core adds at a time
inline constexpr int64_t kFp8Promoted = 128;  // products after which a row promotes
inline constexpr int kFp8Bits = 13;
// Root mean square of the errors of D over that of D, for drawn elements.
inline constexpr double kLargestFp8Error = 0x1p-11;

}  // namespace gemm::testing
