#include "server/identity/identity.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gemm/quote.h"
#include "server/identity/lines.h"

namespace gemmd {
namespace {

constexpr size_t kMaxTokenBytes = 1024;

absl::Status CheckTogether(const IdentityOptions& options) {
  const TlsPaths& tls = options.tls;
  if (tls.certificate.empty() != tls.key.empty()) {
    return absl::InvalidArgumentError(
        tls.key.empty() ? "--tls-certificate is set without --tls-key; allowed: both or neither"
                        : "--tls-key is set without --tls-certificate; allowed: both or neither");
  }
  if (!tls.client_ca.empty() && tls.certificate.empty()) {
    return absl::InvalidArgumentError(
        "--tls-client-ca is set without --tls-certificate; allowed: with a certificate and a key");
  }
  if (!options.require_client_certificate && tls.client_ca.empty()) {
    return absl::InvalidArgumentError(
        "--tls-client-certificates is optional without --tls-client-ca; allowed: with it");
  }
  return absl::OkStatus();
}

// The token of "Bearer TOKEN"; nullopt for anything else. The scheme's case does not count.
std::optional<absl::string_view> BearerToken(absl::string_view authorization) {
  constexpr absl::string_view kScheme = "Bearer ";
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return std::nullopt;
  authorization.remove_prefix(kScheme.size());
  if (authorization.empty() || authorization.size() > kMaxTokenBytes) return std::nullopt;
  return authorization;
}

std::string Utc(absl::Time time) { return absl::FormatTime(time, absl::UTCTimeZone()); }

absl::Status ChangedMeanwhile(absl::string_view flags) {
  return absl::UnavailableError(absl::StrCat(flags, ": changed while it was read"));
}

// Also where the server has the method: what no rule names is as if it were not there.
absl::Status NoRule(absl::string_view method) {
  return absl::UnimplementedError(
      absl::StrCat(gemm::Quoted(method), ": the server has no rule for this method"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Identity>> Identity::Create(
    IdentityOptions options, std::function<void(const Refusal&)> on_refused) {
  if (absl::Status status = CheckTogether(options); !status.ok()) return status;
  std::unique_ptr<Identity> identity(new Identity(std::move(options), std::move(on_refused)));
  for (const Reload& reload : identity->ReloadChanged(/*all=*/true)) {
    if (!reload.status.ok()) return absl::InvalidArgumentError(reload.status.message());
  }
  return identity;
}

Identity::Identity(IdentityOptions options, std::function<void(const Refusal&)> on_refused)
    : options_(std::move(options)),
      on_refused_(std::move(on_refused)),
      asks_(!options_.callers_file.empty() || !options_.tls.client_ca.empty()),
      anonymous_(std::make_shared<Caller>(Caller{.name = "", .roles = RoleSet::All()})) {
  callers_ = std::make_shared<Callers>(Callers::AnyCertificate());
  quotas_ = std::make_shared<Quotas>();
}

absl::StatusOr<CallerPtr> Identity::Identify(const Credentials& credentials) const {
  if (!asks_) return anonymous_;
  if (credentials.authorization.has_value()) {
    const std::optional<absl::string_view> token = BearerToken(*credentials.authorization);
    if (!token.has_value()) {
      return absl::UnauthenticatedError(
          absl::StrCat("authorization: not of the form 'Bearer TOKEN' with a token of 1 to ",
                       kMaxTokenBytes, " bytes"));
    }
    if (CallerPtr caller = callers()->FindToken(*token)) return caller;
    return absl::UnauthenticatedError("authorization: the server does not know this token");
  }
  if (!credentials.certificate_name.empty()) {
    if (CallerPtr caller = callers()->FindCertificate(credentials.certificate_name)) return caller;
    return absl::UnauthenticatedError(
        absl::StrCat("the server does not know the name of the certificate, ",
                     gemm::Quoted(credentials.certificate_name)));
  }
  return absl::UnauthenticatedError(absl::StrCat(
      "no credentials: this server wants 'authorization: Bearer TOKEN'",
      !options_.tls.client_ca.empty() ? ", or a client's certificate with exactly one common name"
                                      : ""));
}

absl::StatusOr<CallerPtr> Identity::CallerWithRole(CallerRole role, absl::string_view what,
                                                   const Credentials& credentials) const {
  absl::StatusOr<CallerPtr> caller = Identify(credentials);
  if (!caller.ok() || (*caller)->roles.Has(role)) return caller;
  return absl::PermissionDeniedError(absl::StrCat(
      gemm::Quoted(what), " needs the role ", Name(role), "; the caller ",
      gemm::Quoted((*caller)->name), " has ", absl::StrJoin((*caller)->roles.Names(), ", ")));
}

absl::Status Identity::CheckValidity(const CertificateValidity& validity) const {
  const absl::Time now = options_.now();
  if (now >= validity.until) {
    return absl::UnauthenticatedError(absl::StrCat("the certificate of this connection expired at ",
                                                   Utc(validity.until),
                                                   ": connect again with a newer one"));
  }
  if (now < validity.from) {
    return absl::UnauthenticatedError(
        absl::StrCat("the certificate of this connection is not valid before ", Utc(validity.from),
                     ", and the server's clock says ", Utc(now)));
  }
  return absl::OkStatus();
}

absl::StatusOr<CallerPtr> Identity::CallerOfMethod(absl::string_view method,
                                                   const Credentials& credentials) const {
  const MethodRule rule = RuleForMethod(method);
  absl::StatusOr<CallerPtr> caller = NoRule(method);
  if (absl::Status valid = CheckValidity(credentials.certificate_validity); !valid.ok()) {
    caller = std::move(valid);
  } else if (rule.who == MethodRule::Who::kRole) {
    caller = CallerWithRole(rule.role, method, credentials);
  } else if (rule.who == MethodRule::Who::kCallers) {
    caller = Identify(credentials);
  }
  if (!caller.ok()) on_refused_({.method = method, .code = caller.status().code()});
  return caller;
}

absl::StatusOr<CallerPtr> Identity::CheckPath(absl::string_view path,
                                              const Credentials& credentials) const {
  if (absl::Status valid = CheckValidity(credentials.certificate_validity); !valid.ok()) {
    return valid;
  }
  const MethodRule rule = RuleForPath(path, options_.services);
  absl::StatusOr<CallerPtr> caller = nullptr;
  switch (rule.who) {
    case MethodRule::Who::kAnyone:
      break;
    case MethodRule::Who::kRole:
      caller = CallerWithRole(rule.role, path, credentials);
      break;
    case MethodRule::Who::kCallers:
      caller = Identify(credentials);
      break;
    case MethodRule::Who::kOff:
      caller = absl::UnimplementedError("this server does not offer this service");
      break;
    case MethodRule::Who::kNobody:
      caller = Identify(credentials);  // a stranger learns nothing
      if (caller.ok()) caller = NoRule(path);
      break;
  }
  return caller;
}

absl::StatusOr<CallerPtr> Identity::Check(absl::string_view path,
                                          const Credentials& credentials) const {
  absl::StatusOr<CallerPtr> caller = CheckPath(path, credentials);
  if (!caller.ok()) on_refused_({.method = path, .code = caller.status().code()});
  return caller;
}

absl::StatusOr<CallerPtr> Identity::CallerOfPath(absl::string_view path,
                                                 const Credentials& credentials) const {
  absl::StatusOr<CallerPtr> caller = Check(path, credentials);
  if (caller.ok() && *caller == nullptr) caller = anonymous_;
  return caller;
}

absl::Status Identity::CheckScrape(std::optional<absl::string_view> authorization) const {
  absl::Status status =
      CallerWithRole(CallerRole::kMetrics, "/metrics", {.authorization = authorization}).status();
  if (!status.ok()) on_refused_({.method = "/metrics", .code = status.code()});
  return status;
}

// Reads the files where they are new. Files that could not be read stay new for the next look, but
// the same error is told once.
template <size_t kFiles, typename Look, typename Read>
void Identity::ReloadIfNew(Watched<kFiles>& watched, bool all, const Look& look, const Read& read,
                           std::vector<Reload>& reloads) {
  const std::array<FileVersion, kFiles> seen = look();
  if (!all && watched.seen == seen) return;
  absl::Status status = read(seen);
  const bool again = absl::IsUnavailable(status);
  watched.seen.reset();
  if (!again) watched.seen = seen;
  const bool told = !all && again && status == watched.status;
  watched.status = status;
  if (!told) reloads.push_back({.what = watched.what, .status = std::move(status)});
}

std::vector<Reload> Identity::ReloadChanged(bool all) {
  std::vector<Reload> reloads;
  const auto reload_file = [&](auto& watched, absl::string_view flag, const std::string& path,
                               auto place) {
    if (path.empty()) return;
    ReloadIfNew(
        watched, all, [&path] { return std::array{VersionOf(path)}; },
        [&](const auto& seen) { return ReadParsed(flag, path, seen[0], place); }, reloads);
  };
  reload_file(watched_callers_, "--callers-file", options_.callers_file, &Identity::callers_);
  reload_file(watched_quotas_, "--quotas-file", options_.quotas_file, &Identity::quotas_);
  if (has_tls()) {
    ReloadIfNew(
        watched_tls_, all, [this] { return TlsVersions(); },
        [this](const auto& seen) { return ReadTls(seen); }, reloads);
  }
  return reloads;
}

template <typename Parsed>
absl::Status Identity::ReadParsed(absl::string_view flag, const std::string& path,
                                  const FileVersion& seen,
                                  std::shared_ptr<const Parsed> Identity::*place) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kMaxFileBytes);
  if (!text.ok()) {
    return absl::Status(text.status().code(), absl::StrCat(flag, ": ", text.status().message()));
  }
  if (VersionOf(path) != seen) return ChangedMeanwhile(flag);
  absl::StatusOr<Parsed> read = Parsed::Parse(*text);
  if (!read.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": '", path, "': ", read.status().message()));
  }
  auto made = std::make_shared<const Parsed>(*std::move(read));
  MutexLock lock(mutex_);
  (this->*place).swap(made);
  return absl::OkStatus();
}

absl::Status Identity::ReadTls(const std::array<FileVersion, 3>& seen) {
  absl::StatusOr<TlsMaterial> read = ReadTlsFiles(options_.tls);
  if (TlsVersions() != seen)
    return ChangedMeanwhile("--tls-certificate, --tls-key, --tls-client-ca");
  if (!read.ok()) return read.status();
  auto made = std::make_shared<const TlsMaterial>(*std::move(read));
  MutexLock lock(mutex_);
  tls_.material.swap(made);
  ++tls_.number;
  return absl::OkStatus();
}

std::array<FileVersion, 3> Identity::TlsVersions() const {
  return {VersionOf(options_.tls.certificate), VersionOf(options_.tls.key),
          VersionOf(options_.tls.client_ca)};
}

Identity::NumberedTls Identity::tls() const {
  MutexLock lock(mutex_);
  return tls_;
}

std::shared_ptr<const Callers> Identity::callers() const {
  MutexLock lock(mutex_);
  return callers_;
}

std::shared_ptr<const Quotas> Identity::quotas() const {
  MutexLock lock(mutex_);
  return quotas_;
}

}  // namespace gemmd
