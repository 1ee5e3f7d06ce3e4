// From a family's table of variants to its rows of the catalogue.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "gemm/kernel.h"

namespace gemm {

// The rows that make_row(index) gives for the indices 0 to kCount - 1, each an
// integral_constant, so that a variant's configuration can pick a template.
template <size_t kCount, class MakeRow>
constexpr std::array<Kernel, kCount> MakeRows(MakeRow make_row) {
  return [&]<size_t... kIndex>(std::index_sequence<kIndex...>) {
    return std::array<Kernel, kCount>{make_row(std::integral_constant<size_t, kIndex>())...};
  }
  (std::make_index_sequence<kCount>());
}

}  // namespace gemm
