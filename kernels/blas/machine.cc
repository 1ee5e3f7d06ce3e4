#include "gemm/machine.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gemm {
namespace {

// "13.0" for 13000, as CUDA counts.
std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

// "580.159.04"; where the kernel module does not say, the CUDA version that it supports.
std::string DriverVersion() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (word.find_first_not_of("0123456789.") == word.npos) return word;
  }
  int driver = 0;
  cudaDriverGetVersion(&driver);
  return absl::StrCat("cuda-", CudaVersion(driver));
}

}  // namespace

absl::StatusOr<Machine> CudaMachine(int ordinal) {
  cudaDeviceProp properties{};
  int runtime = 0;
  if (cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess ||
      cudaRuntimeGetVersion(&runtime) != cudaSuccess) {
    (void)cudaGetLastError();  // hides it from the next call
    return absl::UnavailableError(absl::StrCat("there is no CUDA device ", ordinal));
  }
  const size_t blas = cublasLtGetVersion();
  return Machine{
      .device = properties.name,
      .driver = DriverVersion(),
      .cuda = CudaVersion(runtime),
      .library = absl::StrCat(blas / 10000, ".", blas / 100 % 100, ".", blas % 100),
  };
}

}  // namespace gemm
