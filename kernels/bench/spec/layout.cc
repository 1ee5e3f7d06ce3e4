#include "kernels/bench/spec/layout.h"

#include "absl/strings/str_cat.h"

namespace gemm::bench {

absl::string_view LayoutName(const Layout& layout) {
  if (layout.trans_a) return layout.trans_b ? "tt" : "tn";
  return layout.trans_b ? "nt" : "nn";
}

absl::StatusOr<Layout> ParseLayout(absl::string_view name) {
  for (const Layout& layout : kLayouts) {
    if (LayoutName(layout) == name) return layout;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is no layout: nn, nt, tn and tt are"));
}

}  // namespace gemm::bench
