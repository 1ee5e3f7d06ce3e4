#include "server/identity/grpc_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gemm/quote.h"
#include "server/identity/connection_number.h"

namespace gemmd {
namespace {

constexpr absl::string_view kAuthorization = "authorization";
constexpr absl::string_view kPath = ":path";
// As long as other messages to callers.
constexpr size_t kMaxRefusalBytes = 1536;

absl::string_view View(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// A property of the peer's certificate, which TLS has verified; empty if there is none.
absl::string_view Property(const grpc_auth_context* peer, const char* name) {
  grpc_auth_property_iterator found = grpc_auth_context_find_properties_by_name(peer, name);
  const grpc_auth_property* const property = grpc_auth_property_iterator_next(&found);
  return property == nullptr ? "" : absl::string_view(property->value, property->value_length);
}

// The same; valid as long as `peer`.
absl::string_view Property(const grpc::AuthContext& peer, const char* name) {
  const std::vector<grpc::string_ref> found = peer.FindPropertyValues(name);
  return found.empty() ? "" : absl::string_view(found[0].data(), found[0].size());
}

// The common name of the certificate. Empty where it has none, or several: gRPC gives the
// first of them, which may be the name of a folder, or what the client wished for.
template <typename Peer>
absl::string_view CertificateName(const Peer& peer) {
  const bool one = CountCommonNames(Property(peer, GRPC_X509_SUBJECT_PROPERTY_NAME)) == 1;
  return one ? Property(peer, GRPC_X509_CN_PROPERTY_NAME) : "";
}

// Reads the certificate of a numbered connection.
template <typename Peer>
void ShowCertificate(const Peer& peer, Credentials& credentials) {
  credentials.certificate_name = CertificateName(peer);
  credentials.certificate_validity = ReadValidity(Property(peer, kValidityProperty));
}

struct Checks {
  const Identity& identity;
  const CallCheck check;
};

// The server's objects that gRPC's threads use. They see everything that was written before.
using HandedChecks = std::atomic<const Checks*>;

// Called by gRPC before each call, on the thread that received its headers.
void CheckCall(void* state, grpc_auth_context* peer, const grpc_metadata* metadata, size_t count,
               grpc_process_auth_metadata_done_cb done, void* user_data) {
  const auto& [identity, check] = *static_cast<const HandedChecks*>(state)->load();
  const uint64_t connection = NumberConnection(peer);
  Credentials credentials;
  if (!identity.options().tls.client_ca.empty()) ShowCertificate(peer, credentials);
  absl::string_view path;
  for (size_t i = 0; i < count; ++i) {
    const absl::string_view key = View(metadata[i].key);
    if (key == kPath) path = View(metadata[i].value);
    if (key == kAuthorization) credentials.authorization = View(metadata[i].value);
  }
  const absl::Status status = check(connection, identity.Check(path, credentials));
  // The numbers are the same in both.
  done(user_data, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.raw_code()),
       status.ok() ? nullptr : gemm::Printable(status.message(), kMaxRefusalBytes).c_str());
}

// OpenSSL verifies nothing where a client resumes a session, and renews its ticket each time. So
// gRPC gets a new context after this time, which knows no tickets of the one before: then the
// whole chain is verified again, whose authorities may have expired meanwhile.
constexpr absl::Duration kTicketsLive = absl::Minutes(1);

// The files of TLS that gRPC has.
struct FetchedTls {
  const Identity& identity;
  uint64_t number = 0;
  absl::Time fetched = absl::InfinitePast();
};

// Called by gRPC at each handshake, one at a time. Without anything new, the previous ones stay in
// use.
grpc_ssl_certificate_config_reload_status FetchTls(void* state,
                                                   grpc_ssl_server_certificate_config** config) {
  FetchedTls& last = *static_cast<FetchedTls*>(state);
  const Identity::NumberedTls tls = last.identity.tls();
  const absl::Time now = last.identity.options().now();
  const bool tickets_expired =
      !tls.material->client_ca.empty() && absl::AbsDuration(now - last.fetched) >= kTicketsLive;
  if (tls.number == last.number && !tickets_expired) {
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  }
  last.number = tls.number;
  last.fetched = now;
  const TlsMaterial& material = *tls.material;
  const grpc_ssl_pem_key_cert_pair pair = {material.key.c_str(), material.certificate.c_str()};
  // gRPC ends the process where there are no roots, also if it asks clients for nothing to verify
  // by them (GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE). Then any certificate will do.
  const std::string& roots = material.client_ca.empty() ? material.certificate : material.client_ca;
  *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

// The C++ interface of gRPC 1.51 takes no check for plain connections, and none whose
// certificates change without the experimental provider; its C interface takes both.
class CheckedCredentials final : public grpc::ServerCredentials {
 public:
  CheckedCredentials(const Identity& identity, CallCheck check)
      : identity_(identity), checks_{identity, std::move(check)}, fetched_{identity} {}

  // Never called: the check is there already.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  // Called by the server's builder.
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    checked_by_ = &checks_;
    grpc_server_credentials* const made = Make();
    grpc_server_credentials_set_auth_metadata_processor(
        made, {.process = &CheckCall, .destroy = nullptr, .state = &checked_by_});
    const int port = grpc_server_add_http2_port(server, address.c_str(), made);
    grpc_server_credentials_release(made);
    return port;
  }

  grpc_server_credentials* Make() {
    if (!identity_.has_tls()) return grpc_insecure_server_credentials_create();
    const IdentityOptions& options = identity_.options();
    const auto request = options.tls.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                         : options.require_client_certificate
                             ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                             : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(request, &FetchTls,
                                                                        &fetched_));
  }

  const Identity& identity_;
  const Checks checks_;
  HandedChecks checked_by_ = nullptr;
  FetchedTls fetched_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const Identity& identity,
                                                               CallCheck check) {
  return std::make_shared<CheckedCredentials>(identity, std::move(check));
}

absl::StatusOr<CallerPtr> CallerOf(const Identity& identity,
                                   const grpc::CallbackServerContext& call,
                                   absl::string_view method) {
  if (!identity.asks()) return identity.Identify({});
  Credentials credentials;
  const auto& metadata = call.client_metadata();
  // The last one counts, as in CheckCall.
  const auto [begin, end] =
      metadata.equal_range(grpc::string_ref(kAuthorization.data(), kAuthorization.size()));
  for (auto it = begin; it != end; ++it) {
    credentials.authorization = absl::string_view(it->second.data(), it->second.size());
  }
  std::shared_ptr<const grpc::AuthContext> peer;  // owns the certificate's name
  if (!identity.options().tls.client_ca.empty()) {
    peer = call.auth_context();
    ShowCertificate(*peer, credentials);
  }
  return absl::StartsWith(method, "/") ? identity.CallerOfPath(method, credentials)
                                       : identity.CallerOfMethod(method, credentials);
}

}  // namespace gemmd
