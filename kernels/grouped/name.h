// The name of a grouped variant, which is what its configuration says.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"
#include "kernels/grouped/config.h"

namespace gemm {

class GroupedName {
 public:
  // "grouped_f16_128x256x64_s3_w8": the operands' type, the block's tile, its
  // stages and its warps.
  constexpr GroupedName(absl::string_view type, const GroupedConfig& config) {
    Add("grouped_");
    Add(type);
    Add("_");
    Add(config.tile_m);
    Add("x");
    Add(config.tile_n);
    Add("x");
    Add(config.tile_k);
    Add("_s");
    Add(config.stages);
    Add("_w");
    Add(config.warps);
  }

  constexpr absl::string_view text() const { return {text_, size_}; }

 private:
  constexpr void Add(absl::string_view text) {
    for (const char c : text) text_[size_++] = c;
  }
  constexpr void Add(int number) {
    if (number >= 10) Add(number / 10);
    text_[size_++] = static_cast<char>('0' + number % 10);
  }

  char text_[48] = {};
  size_t size_ = 0;
};

}  // namespace gemm
