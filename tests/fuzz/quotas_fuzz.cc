// The quotas file: what is accepted is bounded and in range, and every caller has a quota.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "server/identity/lines.h"
#include "server/identity/quotas.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckQuota(const gemmd::Quotas& quotas, const gemmd::Caller& caller) {
  const gemmd::CallerQuotaPtr quota = quotas.Of(caller);
  Require(quota != nullptr && quota->caller == caller.name);
  Require(quota->weight >= 0.01 && quota->weight <= 100);
  for (const int64_t bound : {quota->jobs, quota->admitted_bytes, quota->matrices,
                              quota->store_bytes, quota->streams, quota->bytes_per_second}) {
    Require(bound >= 0);
  }
  Require(quota->streams > 0 && quota->bytes_per_second > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<gemmd::Quotas> quotas = gemmd::Quotas::Parse(text);
  if (!quotas.ok()) {
    Require(quotas.status().message().size() < 1024);
    return 0;
  }
  Require(quotas->size() >= 1 && quotas->size() <= gemmd::kMaxFileLines);
  // Every quota has a line of its own, and its first word names the caller.
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  Require(quotas->size() <= lines.size());
  for (const absl::string_view line : lines) {
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (!words.empty()) CheckQuota(*quotas, {.name = words[0], .roles = {}});
  }
  CheckQuota(*quotas, {.name = "", .roles = gemmd::RoleSet::All()});
  return 0;
}
