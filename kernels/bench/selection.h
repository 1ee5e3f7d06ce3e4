// What of the catalogue is to be measured.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/bench/layout.h"
#include "kernels/bench/types_pattern.h"

namespace gemm::bench {

// Every list that is empty takes all.
struct Selection {
  std::vector<std::string> kernels;  // names, or patterns with * and ?
  std::vector<std::string> families;
  // Empty: of each kernel the combination that it lists first.
  std::vector<TypesPattern> types;
  // Empty: of each kernel the one that it reads without a transpose.
  std::optional<Layout> layout;
  // A candidate for each value; kernels without the parameter take no notice,
  // but one of them must have it.
  std::map<std::string, std::vector<int64_t>> params;
};

}  // namespace gemm::bench
