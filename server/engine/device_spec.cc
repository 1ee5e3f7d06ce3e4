// Parsing of the option `devices`, and the bounds of the options beside it.
#include "server/engine/device_spec.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/engine/arena.h"

namespace gemmd {
namespace {

absl::Status BadSpec(absl::string_view spec, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("devices: '", spec, "': ", why,
                   "; want auto, cuda, cuda:LIST (such as cuda:0,1), host or host:COUNT"));
}

// "cuda:0, cuda:1", or "none".
std::string PresentDevices(int count) {
  if (count == 0) return "none";
  std::vector<int> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return absl::StrCat("cuda:", absl::StrJoin(indices, ", cuda:"));
}

// Digits alone: SimpleAtoi would also take signs and spaces.
bool ParseIndex(absl::string_view text, int* value) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, value);
}

absl::StatusOr<DeviceSpec> ParseCudaList(absl::string_view spec, absl::string_view list,
                                         int cuda_devices) {
  DeviceSpec result;
  for (const absl::string_view item : absl::StrSplit(list, ',')) {
    int index = 0;
    if (!ParseIndex(item, &index)) {
      return BadSpec(spec, absl::StrCat("'", item, "' is no device index"));
    }
    if (std::count(result.cuda.begin(), result.cuda.end(), index) != 0) {
      return BadSpec(spec, absl::StrCat("device ", index, " is named twice"));
    }
    result.cuda.push_back(index);
  }
  for (const int index : result.cuda) {
    if (index >= cuda_devices) {
      return absl::FailedPreconditionError(
          absl::StrCat("devices: '", spec, "': there is no cuda:", index,
                       "; CUDA devices present: ", PresentDevices(cuda_devices)));
    }
  }
  return result;
}

absl::StatusOr<DeviceSpec> ParseHostCount(absl::string_view spec, absl::string_view text) {
  int count = 0;
  if (!ParseIndex(text, &count) || count < 1 || count > kMaxHostDevices) {
    return BadSpec(spec, absl::StrCat("'", text, "' is no count from 1 to ", kMaxHostDevices));
  }
  return DeviceSpec{.host_devices = count};
}

DeviceSpec AllCuda(int cuda_devices) {
  DeviceSpec spec;
  spec.cuda.resize(cuda_devices);
  std::iota(spec.cuda.begin(), spec.cuda.end(), 0);
  return spec;
}

absl::Status OutOfBounds(absl::string_view option, uint64_t value, absl::string_view bound) {
  return absl::InvalidArgumentError(absl::StrCat(option, ": ", value, " is not ", bound));
}

}  // namespace

absl::StatusOr<DeviceSpec> ParseDeviceSpec(absl::string_view spec, int cuda_devices) {
  if (spec == "auto") {
    return cuda_devices > 0 ? AllCuda(cuda_devices) : DeviceSpec{.host_devices = 1};
  }
  if (spec == "host") return DeviceSpec{.host_devices = 1};
  if (spec == "cuda") {
    if (cuda_devices > 0) return AllCuda(cuda_devices);
    return absl::FailedPreconditionError(absl::StrCat(
        "devices: '", spec,
        "': there is no CUDA device; CUDA devices present: ", PresentDevices(cuda_devices)));
  }
  absl::string_view rest = spec;
  if (absl::ConsumePrefix(&rest, "cuda:")) return ParseCudaList(spec, rest, cuda_devices);
  if (absl::ConsumePrefix(&rest, "host:")) return ParseHostCount(spec, rest);
  return BadSpec(spec, "not a kind of device");
}

absl::Status CheckDeviceOptions(const EngineOptions& options) {
  if (absl::Status status = CheckStreams(options); !status.ok()) return status;
  if (options.device_memory_bytes != 0 && options.device_memory_bytes < Arena::kAlignment) {
    return OutOfBounds("device_memory_bytes", options.device_memory_bytes,
                       absl::StrCat("0 or at least ", Arena::kAlignment));
  }
  // Whole cache lines, so that no two blocks share one and all are aligned.
  constexpr size_t kCacheLine = 64;
  if (options.staging_block_bytes == 0 || options.staging_block_bytes % kCacheLine != 0) {
    return OutOfBounds("staging_block_bytes", options.staging_block_bytes,
                       absl::StrCat("a multiple of ", kCacheLine, " above 0"));
  }
  if (options.staging_bytes < options.staging_block_bytes) {
    return OutOfBounds(
        "staging_bytes", options.staging_bytes,
        absl::StrCat("at least one block of staging_block_bytes=", options.staging_block_bytes));
  }
  return absl::OkStatus();
}

}  // namespace gemmd
