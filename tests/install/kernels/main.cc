// A user of the installed kernel library: lists the kernels, runs a product on the
// host, and checks it.

#include <cstdio>
#include <memory>
#include <vector>

#include "gemm/catalogue.h"
#include "gemm/generate.h"
#include "gemm/reference.h"
#include "gemm/run.h"

namespace {

// A row-major f32 matrix, drawn from a seed.
struct Matrix {
  Matrix(int64_t rows, int64_t cols, uint64_t seed)
      : pitch_bytes(gemm::PitchBytes(cols, gemm::DType::kF32)), elements(rows * line()) {
    const gemm::GeneratorTarget target{
        .data = elements.data(), .rows = rows, .cols = cols, .pitch_bytes = pitch_bytes};
    status = gemm::GenerateHost({.seed = seed}, target);
  }
  int64_t line() const { return pitch_bytes / static_cast<int64_t>(sizeof(float)); }

  int64_t pitch_bytes;
  std::vector<float> elements;
  absl::Status status;
};

absl::Status Multiply(const gemm::Kernel& kernel) {
  const gemm::Problem problem{.m = 33, .n = 65, .k = 129};
  Matrix a(problem.m, problem.k, 1), b(problem.k, problem.n, 2), d(problem.m, problem.n, 3);
  for (const Matrix* matrix : {&a, &b, &d}) {
    if (!matrix->status.ok()) return matrix->status;
  }
  const gemm::Operands operands{.a = a.elements.data(),
                                .lda = a.line(),
                                .b = b.elements.data(),
                                .ldb = b.line(),
                                .d = d.elements.data(),
                                .ldd = d.line()};
  const size_t bytes = gemm::WorkspaceBytes(kernel, problem);
  std::vector<char> scratch(bytes + 256);
  void* aligned = scratch.data();
  size_t space = scratch.size();
  std::align(256, bytes, aligned, space);

  const auto params = gemm::ResolveParams(kernel, {});
  if (!params.ok()) return params.status();
  const gemm::Launch launch{.problem = problem,
                            .operands = operands,
                            .workspace = {.data = aligned, .bytes = bytes},
                            .params = *params};
  if (absl::Status status = gemm::RunProduct(kernel, launch); !status.ok()) return status;
  const gemm::Agreement agreement =
      gemm::CompareWithReference(problem, operands, gemm::Elements::kAny, problem.m * problem.n, 0);
  std::printf("%.*s: error %.3f of the bound, over %lld elements\n",
              static_cast<int>(kernel.name.size()), kernel.name.data(), agreement.worst_ratio,
              static_cast<long long>(agreement.checked));
  const bool right = agreement.worst_ratio <= 1 && agreement.checked == problem.m * problem.n;
  return right ? absl::OkStatus() : absl::InternalError("the product is wrong");
}

}  // namespace

int main() {
  std::printf("%zu kernels:", gemm::Catalogue().size());
  for (const absl::string_view family : gemm::Families()) {
    std::printf(" %.*s", static_cast<int>(family.size()), family.data());
  }
  std::printf("\n");
  const auto kernel = gemm::FindKernel("host_openblas");
  const absl::Status status = kernel.ok() ? Multiply(**kernel) : kernel.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
