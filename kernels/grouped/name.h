// The name of a grouped variant follows from its configuration.
#pragma once

#include "absl/strings/string_view.h"
#include "kernels/core/fixed_text.h"
#include "kernels/grouped/config.h"

namespace gemm {

// "grouped_f16_128x256x64_s3_w8": the operands' type, the block's tile, its pipeline
// stages and its warps.
constexpr NameText GroupedName(absl::string_view type, const GroupedConfig& config) {
  NameText name;
  name.Add("grouped_", type, "_", config.tile_m, "x", config.tile_n, "x", config.tile_k);
  name.Add("_s", config.stages, "_w", config.warps);
  return name;
}

}  // namespace gemm
