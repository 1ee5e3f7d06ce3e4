// Parses words of the command line. Every error is INVALID_ARGUMENT and says what
// was given and what is allowed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gemmd::ctl {

// "250ms", "1.5s", "2m30s", "1h"; a bare number is seconds. Positive.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

// As files/size_text.h; at least 1.
absl::StatusOr<uint64_t> ParseSize(absl::string_view text);

// A scalar of a product, such as "-0.5" or "1e-3".
absl::StatusOr<double> ParseNumber(absl::string_view text);

// 0 to 1.
absl::StatusOr<double> ParseFraction(absl::string_view text);

// At least 1.
absl::StatusOr<uint64_t> ParseCount(absl::string_view text);

// Each 0 to 2^64 - 1.
absl::StatusOr<uint64_t> ParseSeed(absl::string_view text);
absl::StatusOr<uint64_t> ParseVersion(absl::string_view text);

// One dimension: at least 1 and at most 2^40.
absl::StatusOr<int64_t> ParseDimension(absl::string_view text);

// The extents of a group's products in one dimension, such as "512,0,37": each 0 to 2^40.
absl::StatusOr<std::vector<int64_t>> ParseExtents(absl::string_view text);

// A product's size.
struct ProductShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

// "MxNxK", or one number for a cube.
absl::StatusOr<ProductShape> ParseProductShape(absl::string_view text);

// "value=weight" with a weight of 1 to 1000; without one the weight is 1.
struct Weighted {
  std::string value;
  int weight = 1;
};
absl::StatusOr<Weighted> ParseWeighted(absl::string_view text);

// "name=value" of a launch parameter.
absl::StatusOr<std::pair<std::string, int64_t>> ParseParam(absl::string_view text);

}  // namespace gemmd::ctl
