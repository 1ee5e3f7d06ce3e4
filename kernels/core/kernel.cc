#include "gemm/kernel.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gemm {
namespace {

// "9.0" for 90.
std::string CapabilityName(int capability) {
  return absl::StrCat(capability / 10, ".", capability % 10);
}

bool Includes(const Capability& capability, const DeviceCaps& device) {
  return device.capability >= capability.min && device.capability <= capability.max;
}

std::string Needs(const Capability& capability) {
  if (capability.max == Capability{}.max) return CapabilityName(capability.min) + " or higher";
  if (capability.min == capability.max) return CapabilityName(capability.min) + " exactly";
  return absl::StrCat(CapabilityName(capability.min), " to ", CapabilityName(capability.max));
}

absl::string_view Name(DeviceCode code) {
  switch (code) {
    case DeviceCode::kAny:
      return "any architecture";
    case DeviceCode::kSm89:
      return "sm_89 or higher";
    case DeviceCode::kSm90a:
      return "sm_90a";
  }
  return "an architecture that has no name";
}

// "a f16, b f16, output f32, compute f32".
std::string Describe(const Types& types) {
  return absl::StrCat("a ", Name(types.a), ", b ", Name(types.b), ", output ", Name(types.d),
                      ", compute ", Name(types.compute));
}

}  // namespace

absl::Status Stopped() { return absl::CancelledError("stopped: nobody needs the matrix any more"); }

bool RunsOn(const Kernel& kernel, const DeviceCaps& device) {
  if (kernel.target != device.target) return false;
  return kernel.target == Target::kHost ||
         (Includes(kernel.capability, device) && device.code >= kernel.code);
}

bool Takes(const Kernel& kernel, const Types& types) {
  return std::find(kernel.types.begin(), kernel.types.end(), types) != kernel.types.end();
}

bool TakesInOneLaunch(const Kernel& kernel, const Problem& problem) {
  switch (problem.grouped) {
    case GroupedBy::kNothing:
      return true;
    case GroupedBy::kM:
      return kernel.groups;
    case GroupedBy::kK:
      return false;
  }
  return false;
}

size_t WorkspaceBytes(const Kernel& kernel, const Problem& problem) {
  if (kernel.workspace_bytes == nullptr) return 0;
  if (TakesInOneLaunch(kernel, problem)) return kernel.workspace_bytes(problem);
  // Its products take turns.
  size_t most = 0;
  for (size_t i = 0; i < problem.extents.size(); ++i) {
    if (problem.extents[i] == 0) continue;
    const Problem one = ProductOfGroup(problem, {}, static_cast<int64_t>(i), 0).problem;
    most = std::max(most, kernel.workspace_bytes(one));
  }
  return most;
}

absl::Status CheckDevice(const Kernel& kernel, const DeviceCaps& device) {
  if (RunsOn(kernel, device)) return absl::OkStatus();
  if (kernel.target != device.target) {
    return absl::FailedPreconditionError(
        kernel.target == Target::kCuda
            ? absl::StrCat("kernel ", kernel.name, " needs a CUDA device; this is a host device")
            : absl::StrCat("kernel ", kernel.name, " needs a host device; this is a CUDA device"));
  }
  if (Includes(kernel.capability, device)) {
    return absl::FailedPreconditionError(
        absl::StrCat("kernel ", kernel.name, " was not compiled for ", Name(kernel.code),
                     ", which it needs; what this build has for the device was compiled for ",
                     Name(device.code), " (CMAKE_CUDA_ARCHITECTURES)"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "kernel ", kernel.name, " needs CUDA compute capability ", Needs(kernel.capability),
      "; this device has ", CapabilityName(device.capability)));
}

absl::Status CheckTypes(const Kernel& kernel, const Types& types) {
  if (Takes(kernel, types)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "kernel ", kernel.name, " does not take (", Describe(types), "); it takes (",
      absl::StrJoin(kernel.types, "), (",
                    [](std::string* out, const Types& t) { out->append(Describe(t)); }),
      ")"));
}

absl::Status CheckBatch(const Kernel& kernel, int64_t batch) {
  if (batch == 1 || kernel.batches) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("batch_count is ", batch, ", but kernel ",
                                                 kernel.name, " takes one product at a time"));
}

absl::Status CheckBlockScales(const Kernel& kernel, const Problem& problem) {
  if (!HasBlockScales(problem)) return absl::OkStatus();
  if (!kernel.block_scales) {
    return absl::InvalidArgumentError(
        absl::StrCat("scales_a and scales_b are given, but kernel ", kernel.name,
                     " takes no block scales; ListKernels gives those that do (block_scales)"));
  }
  if (problem.scales_a == ScaleBlocks::kNone || problem.scales_b == ScaleBlocks::kNone) {
    return absl::InvalidArgumentError("one operand has block scales and the other has none");
  }
  if (problem.batch > 1 || problem.grouped != GroupedBy::kNothing) {
    return absl::InvalidArgumentError("block scales belong to single products");
  }
  for (const DType type : {problem.types.a, problem.types.b}) {
    if (IsFp8(type)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("operands with block scales must be e4m3 or e5m2, but one is ", Name(type)));
  }
  return absl::OkStatus();
}

absl::Status CheckSize(const Kernel& kernel, const Problem& problem) {
  int64_t m = problem.m, k = problem.k;
  const int64_t n = problem.n;
  if (!TakesInOneLaunch(kernel, problem)) {
    const int64_t largest = *std::max_element(problem.extents.begin(), problem.extents.end());
    (problem.grouped == GroupedBy::kM ? m : k) = largest;
  }
  if (std::max({m, n, k}) > kernel.max_extent) {
    return absl::InvalidArgumentError(absl::StrCat("m, n and k are ", m, ", ", n, " and ", k,
                                                   ", but kernel ", kernel.name, " takes at most ",
                                                   kernel.max_extent, " of each"));
  }
  if (kernel.tile_m == 0) return absl::OkStatus();
  constexpr int64_t kMostBlocks = std::numeric_limits<int32_t>::max();
  const int64_t tiles_m = (m + kernel.tile_m - 1) / kernel.tile_m;
  const int64_t tiles_n = (n + kernel.tile_n - 1) / kernel.tile_n;
  const double tiles = static_cast<double>(tiles_m) * static_cast<double>(tiles_n) *
                       static_cast<double>(problem.batch);
  if (tiles <= static_cast<double>(kMostBlocks)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "m x n is ", m, " x ", n,
      problem.batch > 1 ? absl::StrCat(" in each of ", problem.batch, " products") : "",
      ", but kernel ", kernel.name, " takes at most ", kMostBlocks, " tiles of ", kernel.tile_m,
      " x ", kernel.tile_n));
}

}  // namespace gemm
