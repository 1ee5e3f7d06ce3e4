#include "server/identity/aborting_header.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "grpcpp/grpcpp.h"

namespace gemmd {
namespace {

constexpr absl::string_view kKey = "grpclb_client_stats";

// grpc_core::ParsedMetadata<grpc_metadata_batch>::VTable of gRPC 1.51
// (src/core/lib/transport/parsed_metadata.h): what is done with a header that was parsed. Its
// callbacks take values and containers of gRPC, of which nothing is read here.
struct HeaderTable {
  bool is_binary;
  void (*destroy)(const void* value);
  void (*set)(const void* value, void* headers);
  void (*with_new_value)(void* slice, const void* on_error, const void* call_on_error,
                         void* result);
  std::string (*debug_string)(const void* value);
  absl::string_view key;
  absl::string_view (*key_of)(const void* value);
};

// The table of this header, a static object of a function, and the guard of its initialisation:
// both are exported, as all such objects of templates are.
constexpr char kTable[] =
    "_ZZN9grpc_core14ParsedMetadataI19grpc_metadata_batchE18TrivialTraitVTableINS_"
    "25GrpcLbClientStatsMetadataEEEPKNS2_6VTableEvE6vtable";
constexpr char kGuard[] =
    "_ZGVZN9grpc_core14ParsedMetadataI19grpc_metadata_batchE18TrivialTraitVTableINS_"
    "25GrpcLbClientStatsMetadataEEEPKNS2_6VTableEvE6vtable";

// Whether this version aborts.
bool Aborts(absl::string_view version) {
  const std::vector<absl::string_view> parts = absl::StrSplit(version, '.');
  int major = 0, minor = 0;
  const bool known =
      parts.size() > 1 && absl::SimpleAtoi(parts[0], &major) && absl::SimpleAtoi(parts[1], &minor);
  return !known || major < 1 || (major == 1 && minor < 53);
}

}  // namespace

absl::Status DropAbortingHeader() {
  const std::string version = grpc::Version();
  if (!Aborts(version)) return absl::OkStatus();
  auto* const table = static_cast<HeaderTable*>(dlsym(RTLD_DEFAULT, kTable));
  auto* const guard = static_cast<std::atomic<uint8_t>*>(dlsym(RTLD_DEFAULT, kGuard));
  if (!absl::StartsWith(version, "1.51.") || table == nullptr || guard == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("gRPC ", version, " ends the process when it receives the header \"", kKey,
                     "\" (CVE-2023-1428), and only the shared library of version 1.51 can be kept "
                     "from it: use that, or gRPC 1.53 or later"));
  }
  if (guard->load(std::memory_order_acquire) != 0 && table->key != kKey) {
    return absl::FailedPreconditionError("gRPC's table of a header is not what version 1.51 has");
  }
  *table = {.is_binary = false,
            .destroy = [](const void*) {},
            .set = [](const void*, void*) {},
            .with_new_value = [](void*, const void*, const void*, void*) {},
            .debug_string = [](const void*) { return absl::StrCat(kKey, ": dropped"); },
            .key = kKey,
            .key_of = nullptr};
  guard->store(1, std::memory_order_release);  // it is initialised
  return absl::OkStatus();
}

}  // namespace gemmd
