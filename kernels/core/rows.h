// Makes rows of the catalogue from a family's table of variants.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "gemm/kernel.h"

namespace gemm {

// The rows make_row(0) to make_row(kCount - 1). Each index is an integral_constant, so
// that a variant's configuration can be a template argument.
template <size_t kCount, class MakeRow>
constexpr std::array<Kernel, kCount> MakeRows(MakeRow make_row) {
  return [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::array<Kernel, kCount>{make_row(std::integral_constant<size_t, kIndex>())...};
  }
  (std::make_index_sequence<kCount>());
}

}  // namespace gemm
