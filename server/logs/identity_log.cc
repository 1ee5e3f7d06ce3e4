#include "server/logs/identity_log.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gemm/quote.h"
#include "server/logs/logging.h"

namespace gemmd {

namespace {

struct Rule {
  const char* flag;
  std::string path;
  mode_t forbidden;
  const char* consequence;
};

}  // namespace

std::vector<std::string> PermissionsTooWide(const IdentityOptions& options) {
  constexpr mode_t kWritten = S_IWGRP | S_IWOTH;
  const Rule rules[] = {
      {"--callers-file", options.callers_file, kWritten,
       "whoever may write it gives every role to anybody"},
      {"--quotas-file", options.quotas_file, kWritten,
       "whoever may write it sets what each caller may have"},
      {"--tls-key", options.tls.key, kWritten | S_IROTH,
       "whoever may read it can stand in for this server"},
      {"--tls-certificate", options.tls.certificate, kWritten,
       "whoever may write it can break TLS"},
      {"--tls-client-ca", options.tls.client_ca, kWritten,
       "whoever may write it lets anybody connect under any name"},
  };
  std::vector<std::string> sentences;
  for (const Rule& rule : rules) {
    struct stat file {};
    if (rule.path.empty() || stat(rule.path.c_str(), &file) != 0) continue;
    const mode_t wide = file.st_mode & rule.forbidden;
    if (wide == 0) continue;
    sentences.push_back(absl::StrCat(
        rule.flag, ": '", rule.path, "' has the mode ",
        absl::StrFormat("%04o", file.st_mode & 07777), ": ", rule.consequence, "; wanted: ",
        absl::StrFormat("%04o", (file.st_mode & 07777) & ~rule.forbidden), ", or less"));
  }
  return sentences;
}

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
