// Products whose scalars and elements are special: zero, NaN, infinite, subnormal
// or out of a type's range. Each has one right result, computed here from the contract
// (gemm/scalars.h) and not by the oracle.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/kernels/product_case.h"

namespace gemm::testing {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct SpecialCase {
  std::string name;
  ProductData data;
  std::vector<double> wanted;  // D row by row, before its rounding
  // Subnormal elements decide the result. Rows that the contract lets flush those
  // to zero are held to the oracle's bound alone.
  bool subnormal = false;
};

struct ProductShape {
  int64_t m;
  int64_t n;
  int64_t k;
};

// D by the contract, row by row, before its last rounding. `data` is as it was
// before the product.
std::vector<double> WantedD(const ProductData& data);

// For every kernel that takes these types. Elements that are not special are small integers, so
// that each finite result is exact. m, n and k are at least 4.
std::vector<SpecialCase> SpecialCases(const Types& types, const ProductShape& shape);

// The few of them that put NaN and infinities into otherwise plain products.
std::vector<SpecialCase> SpecialElementCases(const Types& types, const ProductShape& shape);

// Runs the case and compares every element of D: NaN with NaN, a zero with a zero of either sign,
// and all else exactly, except for GELU. If not `exact`, as CheckProduct does. The oracle has to
// agree in either case. Returns the first fault, or an empty string.
std::string CheckSpecial(const Kernel& kernel, const SpecialCase& special, const Runner& run,
                         bool exact);

// Runs a product with each scalar that is not finite, or too large for `types`. Empty if each is
// refused with a sentence that names it, and D is unchanged.
std::string CheckRefusedScalars(const Kernel& kernel, const Types& types, const Runner& run);

}  // namespace gemm::testing
