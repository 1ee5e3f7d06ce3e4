// The machine that a time was measured on: the device, and the versions of the software that runs
// it.
#pragma once

#include <compare>
#include <string>

#include "absl/status/statusor.h"
#include "gemm/kernel.h"

namespace gemm {

// Each field is text without line breaks, never empty. Only `device` may have spaces.
struct Machine {
  std::string device;         // as its driver names it: "NVIDIA H200"
  std::string driver = "-";   // "580.159.04"; "-" on the host
  std::string cuda = "-";     // of the CUDA runtime, "13.0"; "-" on the host
  std::string library = "-";  // of cuBLAS, on the host of OpenBLAS: "13.1.0"

  // The check takes the 0 that the compiler compares with for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend auto operator<=>(const Machine&, const Machine&) = default;
};

// The processor as Linux names it, or "host" if it does not, and the version of OpenBLAS.
Machine HostMachine();

// CUDA device `ordinal`. UNAVAILABLE if there is none, or in a build without CUDA.
absl::StatusOr<Machine> CudaMachine(int ordinal);

// The capabilities of CUDA device `ordinal`. Asks the driver which of this program's code the
// device takes. FAILED_PRECONDITION if it takes none. Not in a build without CUDA.
absl::StatusOr<DeviceCaps> CudaCaps(int ordinal);

}  // namespace gemm
