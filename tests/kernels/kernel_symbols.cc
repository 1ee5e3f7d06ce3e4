// Prints our own rows of the catalogue as JSON, one row a line. Each has the place of its launch
// function in this program, counted from main. Needs no GPU.
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
                                        {"code", static_cast<int>(kernel->code)},
                                        {"tile_m", kernel->tile_m},
                                        {"tile_n", kernel->tile_n},
                                        {"tile_k", kernel->tile_k},
                                        {"stages", kernel->stages},
                                        {"threads", kernel->threads},
                                        {"shared_bytes", kernel->shared_memory_bytes},
                                        {"element_bytes", gemm::SizeOf(kernel->types[0].a)},
                                        {"launch", launch - reinterpret_cast<intptr_t>(&main)}};
    std::cout << row.dump() << '\n';
  }
}
