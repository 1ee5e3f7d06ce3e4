#include "server/identity/file_permissions.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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

}  // namespace gemmd
