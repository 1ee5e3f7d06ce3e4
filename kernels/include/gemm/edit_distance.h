// Edit distance: finds the names closest to an unknown one.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace gemm {

// Levenshtein's distance: the insertions, deletions and substitutions of one character that turn
// one word into the other.
size_t EditDistance(absl::string_view x, absl::string_view y);

}  // namespace gemm
