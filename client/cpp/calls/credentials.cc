#include "client/cpp/calls/credentials.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gemmd::client {
namespace {

constexpr size_t kMaxCredentialBytes = 1 << 20;  // of a file: enough for every public CA
// Editors write it. What stands behind it would not be found to begin a line.
constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";
constexpr char kRoots[] = "tls.root_certificates_file";
constexpr char kKey[] = "tls.private_key_file";
constexpr char kChain[] = "tls.certificate_chain_file";

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* one) const {
    kFree(one);
  }
};
using Bio = std::unique_ptr<BIO, Freer<&BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freer<&X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<&EVP_PKEY_free>>;

Bio Open(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Nobody is there to be asked for one.
int NoPassword(char*, int, int, void*) { return -1; }

Certificate FirstCertificate(const std::string& pem) {
  return Certificate(PEM_read_bio_X509(Open(pem).get(), nullptr, &NoPassword, nullptr));
}

absl::Status Wrong(absl::string_view field, const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(field, " is '", path, "', ", why));
}

absl::Status CheckRoots(const TlsOptions& tls, const std::string& pem) {
  if (pem.empty() || FirstCertificate(pem) != nullptr) return absl::OkStatus();
  return Wrong(kRoots, tls.root_certificates_file, "which has no certificate in PEM");
}

absl::Status CheckOwn(const TlsOptions& tls, const std::string& key_pem,
                      const std::string& chain_pem) {
  if (key_pem.empty()) return absl::OkStatus();
  const Certificate certificate = FirstCertificate(chain_pem);
  if (certificate == nullptr) {
    return Wrong(kChain, tls.certificate_chain_file, "which has no certificate in PEM");
  }
  const Key key(PEM_read_bio_PrivateKey(Open(key_pem).get(), nullptr, &NoPassword, nullptr));
  if (key == nullptr) {
    return Wrong(kKey, tls.private_key_file, "which has no private key in PEM without a password");
  }
  if (X509_check_private_key(certificate.get(), key.get()) == 1) return absl::OkStatus();
  return Wrong(kKey, tls.private_key_file,
               absl::StrCat("whose key is not that of the certificate in '",
                            tls.certificate_chain_file, "'"));
}

}  // namespace

absl::StatusOr<std::string> ReadCredentialFile(absl::string_view field, const std::string& path) {
  if (path.empty()) return std::string();
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string content(kMaxCredentialBytes + 1, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  content.resize(static_cast<size_t>(file.gcount()));
  // A folder can be opened, and fails at the first read.
  if (!file.is_open() || file.bad() || (content.empty() && errno != 0)) {
    return Wrong(field, path, absl::StrCat("which cannot be read: ", std::strerror(errno)));
  }
  if (content.empty()) return Wrong(field, path, "which is empty");
  if (absl::StartsWith(content, kByteOrderMark)) {
    return Wrong(field, path, "which begins with a byte order mark; save it without one");
  }
  if (content.size() > kMaxCredentialBytes) {
    return Wrong(field, path, absl::StrCat("which has more than ", kMaxCredentialBytes, " bytes"));
  }
  return content;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ChannelCredentials(
    const std::optional<TlsOptions>& tls) {
  if (!tls) return grpc::InsecureChannelCredentials();
  if (tls->private_key_file.empty() != tls->certificate_chain_file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kKey, " and ", kChain, " must be set both or neither"));
  }
  grpc::SslCredentialsOptions pem;
  for (const auto& [field, path, content] :
       {std::tuple(kRoots, &tls->root_certificates_file, &pem.pem_root_certs),
        std::tuple(kKey, &tls->private_key_file, &pem.pem_private_key),
        std::tuple(kChain, &tls->certificate_chain_file, &pem.pem_cert_chain)}) {
    absl::StatusOr<std::string> read = ReadCredentialFile(field, *path);
    if (!read.ok()) return read.status();
    *content = *std::move(read);
  }
  absl::Status status = CheckRoots(*tls, pem.pem_root_certs);
  if (status.ok()) status = CheckOwn(*tls, pem.pem_private_key, pem.pem_cert_chain);
  ERR_clear_error();
  if (!status.ok()) return status;
  return grpc::SslCredentials(pem);
}

}  // namespace gemmd::client
