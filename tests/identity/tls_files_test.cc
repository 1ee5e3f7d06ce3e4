// Files of certificates that are damaged or cut where OpenSSL skips what it cannot read.
#include "server/identity/tls_files.h"

#include <openssl/bio.h>
#include <openssl/pem.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/identity/certificates.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class TlsFilesTest : public ::testing::Test {
 protected:
  static TlsPaths Paths() {
    const std::string stem =
        absl::StrCat(testing::TempDir(), "/tls_files_test.",
                     testing::UnitTest::GetInstance()->current_test_info()->name(), ".");
    return {.certificate = stem + "crt", .key = stem + "key", .client_ca = stem + "ca"};
  }

  // With these certificates as the CA of the clients, and behind the server's own one.
  absl::Status Read(const std::string& client_ca, const std::string& chain = "") {
    const TlsPaths paths = Paths();
    WriteFileAtOnce(paths.certificate, own_.certificate + chain);
    WriteFileAtOnce(paths.key, own_.key);
    WriteFileAtOnce(paths.client_ca, client_ca);
    return ReadTlsFiles(paths).status();
  }

  const TestCa ca_;
  const TestCa other_;
  const KeyedCertificate own_ = ca_.Issue({.common_name = "s"});
};

TEST_F(TlsFilesTest, WholeCertificatesAreTaken) {
  EXPECT_TRUE(Read(ca_.certificate() + "a comment\n" + other_.certificate()).ok());
  std::string without_newline = ca_.certificate();
  without_newline.pop_back();
  EXPECT_TRUE(Read(without_newline).ok()) << "its last line is whole all the same";
}

TEST_F(TlsFilesTest, ACertificateWhoseFirstOrLastLineIsDamagedIsNotSkipped) {
  for (const char* damage : {"----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFIXATE-----",
                             "-----BEGUN CERTIFICATE-----", "-----BEGIN CERTIFICATE---"}) {
    const std::string damaged =
        absl::StrReplaceAll(other_.certificate(), {{"-----BEGIN CERTIFICATE-----", damage}});
    EXPECT_THAT(Read(ca_.certificate() + damaged).message(),
                AllOf(HasSubstr("--tls-client-ca"),
                      AnyOf(HasSubstr("damaged or cut"), HasSubstr("cannot be read"))))
        << damage;
    EXPECT_THAT(Read(ca_.certificate(), damaged).message(), HasSubstr("--tls-certificate"))
        << damage;
  }
}

TEST_F(TlsFilesTest, AFileThatIsCutInACertificateIsRefused) {
  const std::string second = other_.certificate();
  const std::string end = "-----END CERTIFICATE-----";
  // Up to the last line, which without its newline is whole.
  for (size_t bytes = 1; bytes + 1 < second.size(); bytes += bytes < 40 ? 1 : 50) {
    if (second.size() - bytes < end.size()) break;
    EXPECT_FALSE(Read(ca_.certificate() + second.substr(0, bytes)).ok()) << bytes << " bytes";
  }
}

// The key under a password.
std::string Encrypted(const std::string& pem) {
  BIO* const in = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(in, nullptr, nullptr, nullptr);
  BIO* const out = BIO_new(BIO_s_mem());
  unsigned char password[] = "secret";
  EXPECT_EQ(PEM_write_bio_PrivateKey(out, key, EVP_aes_128_cbc(), password, 6, nullptr, nullptr),
            1);
  char* text = nullptr;
  const long bytes = BIO_get_mem_data(out, &text);
  const std::string encrypted(text, static_cast<size_t>(bytes));
  BIO_free(out);
  EVP_PKEY_free(key);
  BIO_free(in);
  return encrypted;
}

// A server that asks a terminal would wait for good.
TEST_F(TlsFilesTest, AKeyUnderAPasswordIsRefusedAndNobodyIsAsked) {
  EXPECT_TRUE(Read(ca_.certificate()).ok());
  const TlsPaths paths = Paths();
  WriteFileAtOnce(paths.key, Encrypted(own_.key));
  EXPECT_THAT(ReadTlsFiles(paths).status().message(),
              AllOf(HasSubstr("--tls-key"), HasSubstr("without a password")));
}

TEST_F(TlsFilesTest, AFileThatIsMissingIsNamedWithItsFlag) {
  EXPECT_TRUE(Read(ca_.certificate()).ok());
  const TlsPaths good = Paths();
  const std::string nowhere = "/nowhere/file.pem";
  TlsPaths paths = good;
  paths.certificate = nowhere;
  EXPECT_THAT(
      ReadTlsFiles(paths).status().message(),
      AllOf(HasSubstr("--tls-certificate: '/nowhere/file.pem'"), HasSubstr("No such file")));
  paths = good;
  paths.key = nowhere;
  EXPECT_THAT(ReadTlsFiles(paths).status().message(), HasSubstr("--tls-key: '/nowhere/file.pem'"));
  paths = good;
  paths.client_ca = nowhere;
  EXPECT_THAT(ReadTlsFiles(paths).status().message(),
              HasSubstr("--tls-client-ca: '/nowhere/file.pem'"));
}

}  // namespace
}  // namespace gemmd
