// Products for the trials of the check (gemm/check.h): right ones, and ones with a flipped bit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gemm/check.h"
#include "tests/kernels/product_case.h"

namespace gemm::testing {

// How the elements of A and B are drawn.
enum class Draw : uint8_t {
  kUniform,   // [-1, 1)
  kPositive,  // [0, 1)
  kNormal,
  kConstant,  // all of them 0.1: the roundings of a sum point one way
  kSparse,    // nine in ten are 0
  kWide,      // magnitudes over eight powers of two
};
inline constexpr int kDraws = 6;

// The maker of the product: a kernel of the host, or the GPU's arithmetic, one addition after the
// other (emulated_kernel.h).
enum class Maker : uint8_t { kOpenblas, kReference, kEmulated };
inline constexpr int kMakers = 3;

struct TrialCase {
  ProductCase product;  // the checked one: without an activation
  Draw draw = Draw::kUniform;
  Maker maker = Maker::kOpenblas;
};
std::string ToString(const TrialCase& trial);

// Every combination of types that is tried: those of the host's kernels, which take what any kernel
// takes.
absl::Span<const Types> TrialTypes();

// Types, shape and all else are drawn from `random`. One in five is the accumulators of a product
// with an activation.
TrialCase DrawTrial(std::mt19937_64& random);

// A right product, computed.
std::unique_ptr<ProductData> ComputeTrial(const TrialCase& trial);

struct Checked {
  CheckOutcome outcome;
  std::vector<RowResidual> rows;
};
Checked CheckOn(const ProductData& data, uint64_t seed);

// Computes and checks products.
struct Machine {
  std::function<std::unique_ptr<ProductData>(const TrialCase&)> compute = ComputeTrial;
  std::function<Checked(const ProductData&, uint64_t seed)> check = CheckOn;
};

// One flipped bit of D, and the verdict of the check.
struct Flip {
  DType type;
  int bit = 0;
  bool finite = true;    // the element, after the flip
  double change = 0;     // of the element, where it is finite
  double tolerance = 0;  // of the row: twice its bound
  bool caught = false;   // beyond the likely bound
  bool certain = false;  // beyond the possible bound
  bool above() const { return !finite || change > tolerance; }
};
// Flips a bit of D, checks, and flips it back. `clean` is the check of D as it was.
Flip FlipOne(const Machine& machine, ProductData& data, const Checked& clean, uint64_t seed,
             std::mt19937_64& random);

// Counts of flips of one bit.
struct BitCounts {
  int64_t flips = 0;
  int64_t above = 0;  // the row's tolerance
  int64_t caught = 0;
  int64_t certain = 0;
  int64_t missed = 0;  // above the tolerance and not caught
};
// Keyed by type, then by bit, 0 the lowest.
using FlipTable = std::map<DType, std::vector<BitCounts>>;

// The result of a trial of flips. `tolerances`: those of the rows, as multiples of the root mean
// square of their elements.
struct FlipTrial {
  FlipTable table;
  std::map<DType, std::vector<double>> tolerances;
  int64_t flips = 0;
  int64_t missed = 0;
  std::string first_missed;
};
FlipTrial TryFlips(int64_t flips, uint64_t seed, const Machine& machine = {});

// The result of a trial of right products.
struct CleanTrial {
  int64_t products = 0;
  int64_t beyond_likely = 0;
  int64_t beyond_possible = 0;
  int64_t with_uncovered_rows = 0;
  double largest_of_likely = 0;
  double largest_of_possible = 0;
  std::string first_beyond;
};
CleanTrial TryClean(int64_t products, uint64_t seed, const Machine& machine = {});

}  // namespace gemm::testing
