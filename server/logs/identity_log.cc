#include "server/logs/identity_log.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gemm/quote.h"
#include "server/identity/file_permissions.h"
#include "server/logs/logging.h"

namespace gemmd {
namespace {

std::string ExpiryText(const Identity& identity) {
  return absl::FormatTime(identity.tls().material->expires, absl::UTCTimeZone());
}

void LogPermissions(const Identity& identity) {
  for (const std::string& sentence : PermissionsTooWide(identity.options())) {
    Log(LogLevel::kWarning, "a file is open to other users", {{"what", sentence}});
  }
}

// A name that is written wrong bounds nobody.
void LogStrangersWithQuotas(const Identity& identity) {
  constexpr size_t kMostNamed = 10;
  if (identity.options().callers_file.empty()) return;
  const std::shared_ptr<const Callers> callers = identity.callers();
  std::vector<std::string> strangers = identity.quotas()->names();
  std::erase_if(strangers, [&](const std::string& name) { return callers->MayName(name); });
  if (strangers.empty()) return;
  const size_t count = strangers.size();
  strangers.resize(std::min(count, kMostNamed));
  Log(LogLevel::kWarning, "quotas of callers whom the callers file does not name",
      {{"count", count}, {"callers", absl::StrJoin(strangers, " ")}});
}

}  // namespace

void LogIdentity(const Identity& identity, const std::vector<std::string>& open) {
  for (const std::string& sentence : open) {
    Log(LogLevel::kWarning, "open to the network, as --insecure allows", {{"what", sentence}});
  }
  LogPermissions(identity);
  if (identity.has_tls()) {
    Log(LogLevel::kInfo, "TLS",
        {{"certificate_expires", ExpiryText(identity)},
         {"client_certificates", !identity.options().tls.client_ca.empty()}});
  }
  if (!identity.options().callers_file.empty()) {
    Log(LogLevel::kInfo, "callers", {{"credentials", identity.callers()->size()}});
  }
  if (!identity.options().quotas_file.empty()) {
    Log(LogLevel::kInfo, "quotas", {{"lines", identity.quotas()->size()}});
  }
  LogStrangersWithQuotas(identity);
}

void LogReload(const Identity& identity, const Reload& reload) {
  LogPermissions(identity);
  if (!reload.status.ok()) {
    Log(LogLevel::kError, "files not taken; what was read before stays in force",
        {{"what", reload.what}, {"reason", reload.status.message()}});
  } else if (reload.what == "tls") {
    Log(LogLevel::kInfo, "TLS files read again", {{"certificate_expires", ExpiryText(identity)}});
  } else if (reload.what == "quotas") {
    Log(LogLevel::kInfo, "quotas file read again", {{"lines", identity.quotas()->size()}});
    LogStrangersWithQuotas(identity);
  } else {
    Log(LogLevel::kInfo, "callers file read again", {{"credentials", identity.callers()->size()}});
    LogStrangersWithQuotas(identity);
  }
}

void LogRefusal(const Refusal& refusal) {
  if (!LogEnabled(LogLevel::kDebug)) return;
  Log(LogLevel::kDebug, "refused a call",
      {{"method", gemm::Quoted(refusal.method)}, {"code", absl::StatusCodeToString(refusal.code)}});
}

}  // namespace gemmd
