// What a result says of its device and its run, so that it can be compared.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gemm::bench {

// "label", "value"; the device's name first.
using Metadata = std::vector<std::pair<std::string, std::string>>;

}  // namespace gemm::bench
