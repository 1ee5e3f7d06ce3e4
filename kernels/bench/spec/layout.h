// How the operands of a product are stored.
#pragma once

#include <array>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

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

}  // namespace gemm::bench
