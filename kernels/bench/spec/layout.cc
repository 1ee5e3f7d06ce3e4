#include "kernels/bench/spec/layout.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gemm::bench {
namespace {

ScaleBlocks KindOf(absl::string_view name) {
  if (name == "lines") return ScaleBlocks::kLines;
  return name == "tiles" ? ScaleBlocks::kTiles : ScaleBlocks::kNone;
}

}  // namespace

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

absl::StatusOr<Scales> ParseScales(absl::string_view text) {
  const std::vector<absl::string_view> kinds = absl::StrSplit(text, ':');
  const Scales scales{KindOf(kinds.front()), KindOf(kinds.back())};
  if (kinds.size() == 2 && scales.a != ScaleBlocks::kNone && scales.b != ScaleBlocks::kNone) {
    return scales;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is not A:B, each lines (1 x 128) or tiles (128 x 128)"));
}

}  // namespace gemm::bench
