// How the operands of a product are stored and scaled.
#pragma once

#include <array>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemm/problem.h"

namespace gemm::bench {

// A as m x k or, transposed, k x m; B likewise.
struct Layout {
  bool trans_a = false;
  bool trans_b = false;

  friend constexpr bool operator==(const Layout& x, const Layout& y) {
    return x.trans_a == y.trans_a && x.trans_b == y.trans_b;
  }
};

inline constexpr std::array<Layout, 4> kLayouts = {
    {{false, false}, {false, true}, {true, false}, {true, true}}};

// "nn", "nt", "tn", "tt".
absl::string_view LayoutName(const Layout& layout);
absl::StatusOr<Layout> ParseLayout(absl::string_view name);

// Block scales of the operands: both or neither.
struct Scales {
  ScaleBlocks a = ScaleBlocks::kNone;
  ScaleBlocks b = ScaleBlocks::kNone;
};

// "lines:tiles": those of A are of 1 x 128 blocks, those of B of 128 x 128.
absl::StatusOr<Scales> ParseScales(absl::string_view text);

}  // namespace gemm::bench
