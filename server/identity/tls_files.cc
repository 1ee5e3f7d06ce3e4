#include "server/identity/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/identity/watched_file.h"

namespace gemmd {
namespace {

constexpr size_t kMaxPemBytes = 1 << 20;

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* owned) const {
    Free(owned);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

Bio Open(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// No terminal is asked for the password of an encrypted key.
int NoPassword(char*, int, int, void*) { return -1; }

absl::Status Wrong(absl::string_view flag, const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": '", path, "': ", why));
}

// OpenSSL's last error, such as "ee key too small". It quotes nothing of a file.
std::string Reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "OpenSSL gives no reason" : reason;
}

// The lines of a file in PEM, whole or not.
struct PemLines {
  size_t begins = 0;
  size_t ends = 0;
  size_t certificate_begins = 0;  // of begins
  size_t certificate_ends = 0;    // of ends
  bool cut = false;               // in the last line
};

PemLines LinesOf(absl::string_view pem) {
  PemLines lines;
  for (const absl::string_view line : absl::StrSplit(pem, '\n')) {
    const bool certificate = absl::StrContains(line, "CERTIFICATE");
    if (absl::StrContains(line, "-BEGIN")) {
      ++lines.begins;
      if (certificate) ++lines.certificate_begins;
    } else if (absl::StrContains(line, "-END")) {
      ++lines.ends;
      if (certificate) ++lines.certificate_ends;
    }
    // A newline follows every line except the last.
    lines.cut = !line.empty() && !absl::StartsWith(line, "-----END");
  }
  return lines;
}

// OpenSSL skips every line that is not a whole "-----BEGIN NAME-----", and so a certificate
// whose first line is damaged or cut. The rest of its lines tells.
absl::Status CheckNoneSkipped(absl::string_view flag, const std::string& path,
                              absl::string_view pem, size_t certificates) {
  const PemLines lines = LinesOf(pem);
  if (lines.begins == lines.ends && lines.certificate_begins == certificates &&
      lines.certificate_ends == certificates && !lines.cut) {
    return absl::OkStatus();
  }
  return Wrong(
      flag, path,
      absl::StrCat("damaged or cut: ", certificates, " certificates can be read, of ", lines.begins,
                   " lines with -BEGIN and ", lines.ends, " with -END",
                   lines.cut ? ", and the last line has no newline" : "",
                   "; allowed: a file in PEM, each certificate from its line BEGIN to its END"));
}

// Reads to the end of the file. gRPC stops without a word at the first block that it cannot read,
// and drops those behind it.
absl::StatusOr<std::vector<Certificate>> AllCertificates(absl::string_view flag,
                                                         const std::string& path,
                                                         const std::string& pem) {
  std::vector<Certificate> certificates;
  const Bio bio = Open(pem);
  ERR_clear_error();
  while (X509* read = PEM_read_bio_X509(bio.get(), nullptr, &NoPassword, nullptr)) {
    certificates.emplace_back(read);
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) {
    return Wrong(flag, path,
                 absl::StrCat("certificate ", certificates.size() + 1,
                              " cannot be read: ", Reason(), "; allowed: a file in PEM"));
  }
  ERR_clear_error();
  if (certificates.empty()) {
    return Wrong(flag, path, "no certificate in it; allowed: a file in PEM");
  }
  if (absl::Status status = CheckNoneSkipped(flag, path, pem, certificates.size()); !status.ok()) {
    return status;
  }
  return certificates;
}

absl::Time Expiry(const X509& certificate) {
  std::tm utc{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &utc) != 1) return absl::InfinitePast();
  return absl::FromTM(utc, absl::UTCTimeZone());
}

absl::StatusOr<std::string> ReadPem(const std::string& flag, const std::string& path) {
  absl::StatusOr<std::string> pem = ReadWholeFile(path, kMaxPemBytes);
  if (pem.ok()) return pem;
  return absl::Status(pem.status().code(), absl::StrCat(flag, ": ", pem.status().message()));
}

// Loads the files as gRPC does at the next handshake. If that fails there, gRPC keeps the old
// files, even a CA that was taken away, and tells nobody.
absl::Status TryOut(const TlsPaths& paths, const std::vector<Certificate>& chain, EVP_PKEY* key,
                    const std::vector<Certificate>& client_ca) {
  ERR_clear_error();
  const Context context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return absl::UnavailableError("OpenSSL makes no context");
  bool right = SSL_CTX_use_certificate(context.get(), chain[0].get()) == 1;
  for (size_t i = 1; right && i < chain.size(); ++i) {
    right = SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) == 1;
  }
  if (!right) {
    return Wrong("--tls-certificate", paths.certificate,
                 absl::StrCat("not accepted by OpenSSL: ", Reason()));
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return Wrong("--tls-key", paths.key, absl::StrCat("not accepted by OpenSSL: ", Reason()));
  }
  for (const Certificate& ca : client_ca) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), ca.get()) == 1) continue;
    return Wrong("--tls-client-ca", paths.client_ca,
                 absl::StrCat("not accepted by OpenSSL: ", Reason()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsPaths& paths) {
  TlsMaterial material;
  absl::StatusOr<std::string> pem = ReadPem("--tls-certificate", paths.certificate);
  if (!pem.ok()) return pem.status();
  material.certificate = *std::move(pem);
  const auto chain = AllCertificates("--tls-certificate", paths.certificate, material.certificate);
  if (!chain.ok()) return chain.status();
  const X509& own = *chain->front();
  material.expires = Expiry(own);

  pem = ReadPem("--tls-key", paths.key);
  if (!pem.ok()) return pem.status();
  material.key = *std::move(pem);
  const PrivateKey key(
      PEM_read_bio_PrivateKey(Open(material.key).get(), nullptr, &NoPassword, nullptr));
  if (key == nullptr) {
    return Wrong("--tls-key", paths.key, "no key in it; allowed: a file in PEM without a password");
  }
  if (X509_check_private_key(&own, key.get()) != 1) {
    return Wrong("--tls-key", paths.key,
                 absl::StrCat("not the key of the certificate in '", paths.certificate, "'"));
  }
  std::vector<Certificate> client_ca;
  if (!paths.client_ca.empty()) {
    pem = ReadPem("--tls-client-ca", paths.client_ca);
    if (!pem.ok()) return pem.status();
    material.client_ca = *std::move(pem);
    auto read = AllCertificates("--tls-client-ca", paths.client_ca, material.client_ca);
    if (!read.ok()) return read.status();
    client_ca = *std::move(read);
  }
  if (absl::Status status = TryOut(paths, *chain, key.get(), client_ca); !status.ok()) {
    return status;
  }
  return material;
}

}  // namespace gemmd
