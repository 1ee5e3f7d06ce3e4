#include "server/identity/connection_number.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/base/mutex.h"

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

namespace {

// Stands beside gRPC's properties of the peer.
constexpr char kProperty[] = "gemmd_connection";

absl::string_view PropertyOf(const grpc_auth_context* connection, const char* name) {
  grpc_auth_property_iterator found = grpc_auth_context_find_properties_by_name(connection, name);
  const grpc_auth_property* const property = grpc_auth_property_iterator_next(&found);
  return property == nullptr ? "" : absl::string_view(property->value, property->value_length);
}

void AddProperty(grpc_auth_context* connection, const char* name, absl::string_view value) {
  grpc_auth_context_add_property(connection, name, value.data(), value.size());
}

uint64_t NumberOf(const grpc_auth_context* connection) {
  uint64_t number = 0;
  return absl::SimpleAtoi(PropertyOf(connection, kProperty), &number) ? number : 0;
}

std::string Text(const CertificateValidity& validity) {
  return absl::StrCat(absl::ToUnixSeconds(validity.from), " ", absl::ToUnixSeconds(validity.until));
}

}  // namespace

uint64_t NumberConnection(grpc_auth_context* connection) {
  static Mutex mutex;
  static uint64_t last = 0;
  MutexLock lock(mutex);
  if (const uint64_t number = NumberOf(connection); number != 0) return number;
  const absl::string_view certificate = PropertyOf(connection, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (!certificate.empty()) {
    AddProperty(connection, kValidityProperty, Text(ValidityOf(certificate)));
  }
  AddProperty(connection, kProperty, absl::StrCat(++last));
  return last;
}

CertificateValidity ReadValidity(absl::string_view property) {
  if (property.empty()) return {};
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(property, ' ');
  int64_t from = 0;
  int64_t until = 0;
  if (!absl::SimpleAtoi(parts.first, &from) || !absl::SimpleAtoi(parts.second, &until)) {
    return ValidityOf("");
  }
  return {.from = absl::FromUnixSeconds(from), .until = absl::FromUnixSeconds(until)};
}

uint64_t ConnectionOf(grpc_call* call) {
  grpc_auth_context* const connection = grpc_call_auth_context(call);
  if (connection == nullptr) return 0;
  const uint64_t number = NumberOf(connection);
  grpc_auth_context_release(connection);
  return number;
}

}  // namespace gemmd
