// Which kernels of the catalogue to measure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/bench/spec/layout.h"
#include "kernels/bench/spec/types_pattern.h"

namespace gemm::bench {

// An empty list selects all.
struct Selection {
  std::vector<std::string> kernels;  // names, or patterns with * and ?
  std::vector<std::string> families;
  // Empty: each kernel's first combination.
  std::vector<TypesPattern> types;
  // Empty: the layout that each kernel reads without a transpose.
  std::optional<Layout> layout;
  // A candidate for each value. Kernels without the parameter ignore it; at least one
  // must have it.
  std::map<std::string, std::vector<int64_t>> params;
  // Only kernels, and types, that take block scales.
  bool with_scales = false;
};

}  // namespace gemm::bench
