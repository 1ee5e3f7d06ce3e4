#include "server/identity/client_certificate.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>

#include "absl/strings/match.h"

namespace gemmd {
namespace {

// `unreadable` where OpenSSL cannot read the time.
absl::Time ToTime(const ASN1_TIME* time, absl::Time unreadable) {
  std::tm utc{};
  if (ASN1_TIME_to_tm(time, &utc) != 1) return unreadable;
  return absl::FromTM(utc, absl::UTCTimeZone());
}

}  // namespace

size_t CountCommonNames(absl::string_view subject) {
  size_t count = 0;
  bool attribute_begins = true;
  for (size_t i = 0; i < subject.size(); ++i) {
    if (attribute_begins && absl::StartsWith(subject.substr(i), "CN=")) ++count;
    attribute_begins = subject[i] == ',' || subject[i] == '+';
    if (subject[i] == '\\') ++i;  // what it escapes belongs to a value
  }
  return count;
}

CertificateValidity ValidityOf(absl::string_view pem) {
  constexpr CertificateValidity kNever = {.from = absl::InfiniteFuture(),
                                          .until = absl::InfinitePast()};
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  if (bio == nullptr) return kNever;
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free);
  if (certificate == nullptr) return kNever;
  return {.from = ToTime(X509_get0_notBefore(certificate.get()), kNever.from),
          .until = ToTime(X509_get0_notAfter(certificate.get()), kNever.until)};
}

}  // namespace gemmd
