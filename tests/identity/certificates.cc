#include "tests/identity/certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace gemmd {
namespace {

void Require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "certificates: %s failed\n", what);
  std::abort();
}

std::string Text(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

std::string Pem(X509* certificate) {
  BIO* bio = BIO_new(BIO_s_mem());
  Require(PEM_write_bio_X509(bio, certificate) == 1, "PEM_write_bio_X509");
  return Text(bio);
}

std::string Pem(EVP_PKEY* key) {
  BIO* bio = BIO_new(BIO_s_mem());
  Require(PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
          "PEM_write_bio_PrivateKey");
  return Text(bio);
}

void AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  Require(extension != nullptr, "X509V3_EXT_conf_nid");
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

void AddCommonName(X509_NAME* subject, const std::string& text) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.c_str());
  Require(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, bytes, -1, -1, 0) == 1,
          "X509_NAME_add_entry_by_txt");
}

// Not signed yet.
X509* MakeCertificate(const CertificateSpec& spec, EVP_PKEY* key) {
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  int64_t serial = 0;
  Require(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), 7) == 1, "RAND_bytes");
  ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate), serial + 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), absl::ToInt64Seconds(spec.valid_from));
  X509_gmtime_adj(X509_getm_notAfter(certificate), absl::ToInt64Seconds(spec.valid_to));
  X509_NAME* name = X509_get_subject_name(certificate);
  AddCommonName(name, spec.common_name);
  if (!spec.second_common_name.empty()) AddCommonName(name, spec.second_common_name);
  X509_set_pubkey(certificate, key);
  return certificate;
}

}  // namespace

struct TestCa::Impl {
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
  std::string pem;
};

TestCa::TestCa() : impl_(std::make_unique<Impl>()) {
  impl_->key = EVP_EC_gen("P-256");
  Require(impl_->key != nullptr, "EVP_EC_gen");
  impl_->certificate = MakeCertificate({.common_name = "test CA"}, impl_->key);
  X509_set_issuer_name(impl_->certificate, X509_get_subject_name(impl_->certificate));
  AddExtension(impl_->certificate, impl_->certificate, NID_basic_constraints, "critical,CA:TRUE");
  Require(X509_sign(impl_->certificate, impl_->key, EVP_sha256()) > 0, "X509_sign");
  impl_->pem = Pem(impl_->certificate);
}

TestCa::~TestCa() {
  X509_free(impl_->certificate);
  EVP_PKEY_free(impl_->key);
}

const std::string& TestCa::certificate() const { return impl_->pem; }

KeyedCertificate TestCa::Issue(const CertificateSpec& spec) const {
  EVP_PKEY* key = spec.rsa_bits == 0 ? EVP_EC_gen("P-256") : EVP_RSA_gen(spec.rsa_bits);
  Require(key != nullptr, "EVP_EC_gen or EVP_RSA_gen");
  X509* certificate = MakeCertificate(spec, key);
  X509_set_issuer_name(certificate, X509_get_subject_name(impl_->certificate));
  if (!spec.dns_name.empty()) {
    AddExtension(certificate, impl_->certificate, NID_subject_alt_name, "DNS:" + spec.dns_name);
  }
  Require(X509_sign(certificate, impl_->key, EVP_sha256()) > 0, "X509_sign");
  KeyedCertificate issued = {.certificate = Pem(certificate), .key = Pem(key)};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return issued;
}

void WriteFileAtOnce(const std::string& path, absl::string_view text) {
  const std::string beside = path + ".new";
  std::ofstream(beside, std::ios::binary) << text;
  Require(std::rename(beside.c_str(), path.c_str()) == 0, "rename");
}

}  // namespace gemmd
