#include "server/identity/tls_files.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
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
using PrivateKey = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

Bio Open(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// No terminal is asked for the password of an encrypted key.
int NoPassword(char*, int, int, void*) { return -1; }

absl::StatusOr<Certificate> FirstCertificate(const std::string& flag, const std::string& path,
                                             const std::string& pem) {
  Certificate certificate(PEM_read_bio_X509(Open(pem).get(), nullptr, &NoPassword, nullptr));
  if (certificate != nullptr) return certificate;
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": '", path, "': no certificate in it; allowed: a file in PEM"));
}

absl::Time Expiry(const X509& certificate) {
  std::tm utc{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &utc) != 1) return absl::InfinitePast();
  return absl::FromTM(utc, absl::UTCTimeZone());
}

absl::StatusOr<std::string> ReadPem(const std::string& flag, const std::string& path) {
  absl::StatusOr<std::string> pem = ReadWholeFile(path, kMaxPemBytes);
  if (pem.ok()) return pem;
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", pem.status().message()));
}

}  // namespace

absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsPaths& paths) {
  TlsMaterial material;
  absl::StatusOr<std::string> pem = ReadPem("--tls-certificate", paths.certificate);
  if (!pem.ok()) return pem.status();
  material.certificate = *std::move(pem);
  const absl::StatusOr<Certificate> own =
      FirstCertificate("--tls-certificate", paths.certificate, material.certificate);
  if (!own.ok()) return own.status();
  material.expires = Expiry(**own);

  pem = ReadPem("--tls-key", paths.key);
  if (!pem.ok()) return pem.status();
  material.key = *std::move(pem);
  const PrivateKey key(
      PEM_read_bio_PrivateKey(Open(material.key).get(), nullptr, &NoPassword, nullptr));
  if (key == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tls-key: '", paths.key, "': no key in it; allowed: a file in PEM without a password"));
  }
  if (X509_check_private_key(own->get(), key.get()) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("--tls-key: '", paths.key,
                                                   "': not the key of the certificate in '",
                                                   paths.certificate, "'"));
  }
  if (paths.client_ca.empty()) return material;
  pem = ReadPem("--tls-client-ca", paths.client_ca);
  if (!pem.ok()) return pem.status();
  material.client_ca = *std::move(pem);
  const auto ca = FirstCertificate("--tls-client-ca", paths.client_ca, material.client_ca);
  if (!ca.ok()) return ca.status();
  return material;
}

}  // namespace gemmd
