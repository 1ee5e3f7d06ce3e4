// Parsing of the option `devices`, and the bounds of the options beside it.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/engine/device/arena.h"
#include "server/engine/device/device_kinds.h"

namespace gemmd {
namespace {

absl::Status BadSpec(absl::string_view spec, absl::Span<const DeviceKind> kinds,
                     absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("--devices: '", spec, "': ", why, "; allowed: ", DeviceSpecForms(kinds)));
}

int CountOf(const DeviceKind& kind) { return kind.count == nullptr ? 0 : kind.count(); }

std::vector<int> FirstIndices(int count) {
  std::vector<int> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

// "CUDA devices present: cuda:0, cuda:1", or "... none".
std::string PresentDevices(const DeviceKind& kind, int count) {
  const std::string prefix = absl::StrCat(kind.name, ":");
  return absl::StrCat(
      kind.title, " devices present: ",
      count == 0 ? "none"
                 : absl::StrCat(prefix, absl::StrJoin(FirstIndices(count), ", " + prefix)));
}

// Digits alone: SimpleAtoi would also take signs and spaces.
bool ParseIndex(absl::string_view text, int* value) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(text, value);
}

absl::StatusOr<DeviceSpec> ParseList(absl::string_view spec, absl::Span<const DeviceKind> kinds,
                                     const DeviceKind& kind, absl::string_view list) {
  DeviceSpec result{.kind = &kind};
  for (const absl::string_view item : absl::StrSplit(list, ',')) {
    int index = 0;
    if (!ParseIndex(item, &index)) {
      return BadSpec(spec, kinds, absl::StrCat("'", item, "' is no device index"));
    }
    if (std::count(result.indices.begin(), result.indices.end(), index) != 0) {
      return BadSpec(spec, kinds, absl::StrCat("device ", index, " is named twice"));
    }
    result.indices.push_back(index);
  }
  const int count = CountOf(kind);
  for (const int index : result.indices) {
    if (index >= count) {
      return absl::FailedPreconditionError(absl::StrCat("--devices: '", spec, "': there is no ",
                                                        kind.name, ":", index, "; ",
                                                        PresentDevices(kind, count)));
    }
  }
  return result;
}

absl::StatusOr<DeviceSpec> ParseCount(absl::string_view spec, absl::Span<const DeviceKind> kinds,
                                      const DeviceKind& kind, absl::string_view text) {
  int count = 0;
  if (!ParseIndex(text, &count) || count < 1 || count > kind.max_made) {
    return BadSpec(spec, kinds, absl::StrCat("'", text, "' is no count from 1 to ", kind.max_made));
  }
  return DeviceSpec{&kind, FirstIndices(count)};
}

absl::StatusOr<DeviceSpec> AllOf(absl::string_view spec, const DeviceKind& kind) {
  if (kind.max_made > 0) return DeviceSpec{&kind, {0}};
  if (const int count = CountOf(kind); count > 0) return DeviceSpec{&kind, FirstIndices(count)};
  return absl::FailedPreconditionError(absl::StrCat(
      "--devices: '", spec, "': there is no ", kind.title, " device; ", PresentDevices(kind, 0)));
}

absl::Status OutOfBounds(absl::string_view option, uint64_t value, absl::string_view bound) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", option, " is ", value, ", but must be ", bound));
}

}  // namespace

std::string DeviceSpecForms(absl::Span<const DeviceKind> kinds) {
  std::string forms = "auto";
  for (const DeviceKind& kind : kinds) {
    const bool last = &kind == &kinds.back();
    absl::StrAppend(
        &forms, ", ", kind.name, last ? " or " : ", ", kind.name,
        kind.max_made > 0 ? ":COUNT" : absl::StrCat(":LIST (such as ", kind.name, ":0,1)"));
  }
  return forms;
}

absl::StatusOr<DeviceSpec> ParseDeviceSpec(absl::string_view spec,
                                           absl::Span<const DeviceKind> kinds) {
  if (spec == "auto") {
    for (const DeviceKind& kind : kinds) {
      if (kind.max_made > 0 || CountOf(kind) > 0) return AllOf(spec, kind);
    }
  }
  const size_t colon = spec.find(':');
  for (const DeviceKind& kind : kinds) {
    if (spec.substr(0, colon) != kind.name) continue;
    if (colon == absl::string_view::npos) return AllOf(spec, kind);
    const absl::string_view rest = spec.substr(colon + 1);
    return kind.max_made > 0 ? ParseCount(spec, kinds, kind, rest)
                             : ParseList(spec, kinds, kind, rest);
  }
  return BadSpec(spec, kinds, "not a kind of device");
}

absl::Status CheckDeviceOptions(const EngineOptions& options) {
  if (absl::Status status = CheckStreams(options); !status.ok()) return status;
  if (options.device_memory_bytes != 0 && options.device_memory_bytes < Arena::kAlignment) {
    return OutOfBounds("device-memory-bytes", options.device_memory_bytes,
                       absl::StrCat("0 or at least ", Arena::kAlignment));
  }
  // Whole cache lines, so that no two blocks share one and all are aligned.
  constexpr size_t kCacheLine = 64;
  if (options.staging_block_bytes == 0 || options.staging_block_bytes % kCacheLine != 0) {
    return OutOfBounds("staging-block-bytes", options.staging_block_bytes,
                       absl::StrCat("a multiple of ", kCacheLine, " above 0"));
  }
  if (options.staging_bytes < options.staging_block_bytes) {
    return OutOfBounds("staging-bytes", options.staging_bytes,
                       absl::StrCat("at least one block (--staging-block-bytes=",
                                    options.staging_block_bytes, ")"));
  }
  return absl::OkStatus();
}

}  // namespace gemmd
