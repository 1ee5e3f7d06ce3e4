// How near `auto` comes to the fastest row of each shape.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/bench/result/row.h"

namespace gemm::bench {

// The name of the row that `auto` takes (measure/auto_rows.h).
inline constexpr absl::string_view kAuto = "auto";

// Below this share of the fastest a shape counts as low.
inline constexpr double kLowShare = 0.9;

// The shares for some types and a layout, over the shapes where the choice of `auto` was measured.
struct AutoShare {
  struct At {
    Shape shape;
    double share = 0;  // the fastest row's time over that of the choice of `auto`
    std::string took;  // "takes hopper_f16_128x128x64"
    std::string best;
  };

  Types types{};
  Layout layout;
  size_t shapes = 0;
  double mean = 0;        // geometric
  double by_time = 0;     // the sum of the fastest rows' times over that of what `auto` takes
  size_t below = 0;       // shapes with less than kLowShare
  std::vector<At> worst;  // at most ten, the worst first
};

// In the order in which they first appear. The fastest row is that of all right ones: kernels,
// baselines, and algorithms of a library. Empty without rows of `auto`.
std::vector<AutoShare> SummariseAuto(absl::Span<const Row> rows);

}  // namespace gemm::bench
