// Prints our own rows of the catalogue as JSON, one row a line, each with where in
// this program its launch function lies, counted from main. Needs no GPU.
//
// A row's launch function and its kernels are templates over the same type: the
// launch function's name, which the program's symbol table has, leads to theirs.
#include <cstdint>
#include <iostream>
#include <string>

#include "gemm/catalogue.h"
#include "nlohmann/json.hpp"

int main() {
  for (const gemm::Kernel* kernel : gemm::Catalogue()) {
    // Libraries choose their tiles; their kernels are not ours.
    if (kernel->target != gemm::Target::kCuda || kernel->tile_m == 0) continue;
    const auto launch = reinterpret_cast<intptr_t>(kernel->launch);
    const nlohmann::ordered_json row = {{"name", std::string(kernel->name)},
                                        {"family", std::string(kernel->family)},
                                        {"min_capability", kernel->capability.min},
                                        {"launch", launch - reinterpret_cast<intptr_t>(&main)}};
    std::cout << row.dump() << '\n';
  }
}
