// How far one word is from another: for the names nearest to one that there is not.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace gemm {

// Levenshtein's distance: the insertions, deletions and substitutions of one character that turn
// one word into the other.
size_t EditDistance(absl::string_view x, absl::string_view y);

}  // namespace gemm
