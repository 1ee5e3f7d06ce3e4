#include "kernels/bench/backend.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gemm::bench {

absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(absl::string_view name) {
  if (name == "host") return CreateHostBackend();
  if (name == "cuda") return CreateCudaBackend(0);
  if (name == "auto") {
    auto cuda = CreateCudaBackend(0);
    if (cuda.ok() || !absl::IsUnavailable(cuda.status())) return cuda;
    return CreateHostBackend();
  }
  int ordinal = 0;
  if (absl::ConsumePrefix(&name, "cuda:") && absl::SimpleAtoi(name, &ordinal) && ordinal >= 0) {
    return CreateCudaBackend(ordinal);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is no device: auto, host, cuda and cuda:1 are"));
}

}  // namespace gemm::bench
