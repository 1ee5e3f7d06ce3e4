// gemm_features: prints the features that the trees of estimates look at (features.h), for products
// on standard input.
//
// A line of input is the types, the layout, the place of the types in their class and of the
// device, and m, n and k: "f16:f16:f16:f32 nt 0 0 4096 4096 4096". Prints a line for each kernel
// that takes the product: the number of the input line, the kernel, the seconds of its formula (or
// of the least one), and its features.
#include <cstdio>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gemm/catalogue.h"
#include "gemm/estimates.h"
#include "kernels/tuning/features.h"

namespace gemm {
namespace {

bool ParseTypes(const std::string& text, Types& types) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts.size() != 4) return false;
  const auto a = ParseDType(parts[0]), b = ParseDType(parts[1]), d = ParseDType(parts[2]);
  const auto compute = ParseCompute(parts[3]);
  if (!a || !b || !d || !compute) return false;
  types = {*a, *b, *d, *compute};
  return true;
}

void Print(int line, const Problem& p, size_t types, size_t device) {
  std::vector<const Kernel*> kernels;
  for (const Kernel* kernel : Catalogue()) {
    const bool measured_so = kernel->types.front().compute == p.types.compute;
    if (kernel->target == Target::kCuda && Takes(*kernel, p.types) && measured_so) {
      kernels.push_back(kernel);
    }
  }
  const std::vector<double> formulas = FormulaSeconds(p, kernels);
  const double base = BaseSeconds(p, formulas);
  Features f{};
  SetProductFeatures(p, base, types, device, f);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const double seconds = kernels[i]->estimated_seconds == nullptr ? base : formulas[i];
    SetKernelFeatures(p, *kernels[i], seconds, base, f);
    std::printf("%d %s %.9g", line, std::string(kernels[i]->name).c_str(), seconds);
    for (const float feature : f) std::printf(" %.9g", static_cast<double>(feature));
    std::printf("\n");
  }
}

int Run() {
  std::string line;
  for (int number = 0; std::getline(std::cin, line); ++number) {
    std::istringstream words(line);
    std::string types, layout;
    size_t types_place = 0, device = 0;
    Problem p;
    words >> types >> layout >> types_place >> device >> p.m >> p.n >> p.k;
    if (!words || !ParseTypes(types, p.types) || layout.size() != 2) {
      std::cerr << "gemm_features: line " << number + 1 << " is \"" << line
                << "\"; it must be such as: f16:f16:f16:f32 nt 0 0 4096 4096 4096\n";
      return 2;
    }
    p.trans_a = layout[0] == 't';
    p.trans_b = layout[1] == 't';
    Print(number, p, types_place, device);
  }
  return 0;
}

}  // namespace
}  // namespace gemm

int main() { return gemm::Run(); }
