// Identifies callers, and checks what they may do and how much, before every call.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/identity/callers.h"
#include "server/identity/connection_number.h"
#include "server/identity/method_rules.h"
#include "server/identity/quotas.h"
#include "server/identity/roles.h"
#include "server/identity/tls_files.h"
#include "server/identity/watched_file.h"

namespace gemmd {

struct IdentityOptions {
  std::string callers_file;  // empty: none
  std::string quotas_file;   // empty: none
  TlsPaths tls;
  // Whether a client without a certificate is refused its connection. Else a token may
  // stand in for it. Means nothing without tls.client_ca.
  bool require_client_certificate = true;
  ServiceRules services;
  // The wall clock, by which certificates expire. Only tests set another.
  absl::Time (*now)() = &absl::Now;
};

// The credentials of a call.
struct Credentials {
  // The metadata "authorization"; nullopt where there is none.
  std::optional<absl::string_view> authorization;
  // The common name of the certificate of mutual TLS; empty where there is none, or several.
  absl::string_view certificate_name;
  // The validity of that certificate; at all times if there is none.
  CertificateValidity certificate_validity;
};

// A call or a scrape that was refused.
struct Refusal {
  absl::string_view method;  // "/gemm.v1.GemmService/Multiply"; as the client sent it
  absl::StatusCode code;
};

// A file, or files that belong together, that were read again.
struct Reload {
  absl::string_view what;  // "callers", "quotas" or "tls"
  absl::Status status;     // not OK: what was read before stays in force
};

// Thread-safe.
class Identity {
 public:
  // `on_refused` is called from any thread, and must be quick. INVALID_ARGUMENT names the
  // flag, the value and what is allowed.
  static absl::StatusOr<std::unique_ptr<Identity>> Create(
      IdentityOptions options, std::function<void(const Refusal&)> on_refused);

  // Whether callers must show who they are. If not, everybody is one caller without a name, who has
  // every role.
  bool asks() const { return asks_; }
  bool has_tls() const { return !options_.tls.certificate.empty(); }
  const IdentityOptions& options() const { return options_; }

  // The caller with these credentials. UNAUTHENTICATED.
  absl::StatusOr<CallerPtr> Identify(const Credentials& credentials) const;
  // The next two refuse a certificate that is not valid now, whatever else is shown, as a handshake
  // does. TLS looks at it when a connection begins, and not even then where a session is resumed.

  // Who calls this method of a service of ours, such as "Multiply", where that caller has the role
  // for it now. UNAUTHENTICATED, PERMISSION_DENIED, UNIMPLEMENTED where no rule names the method.
  absl::StatusOr<CallerPtr> CallerOfMethod(absl::string_view method,
                                           const Credentials& credentials) const;
  // The caller whose call of this path may go on; null if anyone's may. UNAUTHENTICATED,
  // PERMISSION_DENIED, or UNIMPLEMENTED for a service that is off, and for a method that no rule
  // names.
  absl::StatusOr<CallerPtr> Check(absl::string_view path, const Credentials& credentials) const;
  // The same, where a stranger whom the rule lets in is the caller without a name.
  absl::StatusOr<CallerPtr> CallerOfPath(absl::string_view path,
                                         const Credentials& credentials) const;
  // Whether /metrics may be read with this header. The same codes.
  absl::Status CheckScrape(std::optional<absl::string_view> authorization) const;

  // The bounds of this caller, as the quotas file has them now. Never null.
  CallerQuotaPtr QuotaOf(const Caller& caller) const { return quotas()->Of(caller); }

  // Reads the files that have changed since they were last read, or that could not be, or
  // all of them. One thread at a time.
  std::vector<Reload> ReloadChanged(bool all = false);

  // The files of TLS as last read, and their number, from 1. Only with has_tls().
  struct NumberedTls {
    std::shared_ptr<const TlsMaterial> material;
    uint64_t number = 0;
  };
  NumberedTls tls() const;
  std::shared_ptr<const Callers> callers() const;
  std::shared_ptr<const Quotas> quotas() const;

 private:
  Identity(IdentityOptions options, std::function<void(const Refusal&)> on_refused);

  // Files that belong together.
  template <size_t kFiles>
  struct Watched {
    absl::string_view what;
    // As last read, also where they were wrong; nullopt where they could not be read.
    std::optional<std::array<FileVersion, kFiles>> seen;
    absl::Status status;
  };

  template <size_t kFiles, typename Look, typename Read>
  static void ReloadIfNew(Watched<kFiles>& watched, bool all, const Look& look, const Read& read,
                          std::vector<Reload>& reloads);
  // Reads the file of a flag by `Parsed::Parse` into `place`. UNAVAILABLE also where a file is
  // no longer the one that was seen.
  template <typename Parsed>
  absl::Status ReadParsed(absl::string_view flag, const std::string& path, const FileVersion& seen,
                          std::shared_ptr<const Parsed> Identity::*place);
  absl::Status ReadTls(const std::array<FileVersion, 3>& seen);
  absl::StatusOr<CallerPtr> CallerWithRole(CallerRole role, absl::string_view what,
                                           const Credentials& credentials) const;
  // UNAUTHENTICATED where the certificate is not valid now.
  absl::Status CheckValidity(const CertificateValidity& validity) const;
  // Check, before it tells of a refusal.
  absl::StatusOr<CallerPtr> CheckPath(absl::string_view path, const Credentials& credentials) const;
  std::array<FileVersion, 3> TlsVersions() const;

  const IdentityOptions options_;
  const std::function<void(const Refusal&)> on_refused_;
  const bool asks_;
  const CallerPtr anonymous_;

  Watched<1> watched_callers_{.what = "callers", .seen = {}, .status = {}};
  Watched<1> watched_quotas_{.what = "quotas", .seen = {}, .status = {}};
  Watched<3> watched_tls_{.what = "tls", .seen = {}, .status = {}};

  mutable Mutex mutex_;
  std::shared_ptr<const Callers> callers_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Quotas> quotas_ ABSL_GUARDED_BY(mutex_);
  NumberedTls tls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gemmd
