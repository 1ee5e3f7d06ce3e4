// Files of certificates that are damaged or cut where OpenSSL skips what it cannot read.
#include "server/identity/tls_files.h"

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
  // With these certificates as the CA of the clients, and behind the server's own one.
  absl::Status Read(const std::string& client_ca, const std::string& chain = "") {
    const std::string stem =
        absl::StrCat(testing::TempDir(), "/tls_files_test.",
                     testing::UnitTest::GetInstance()->current_test_info()->name(), ".");
    const TlsPaths paths = {
        .certificate = stem + "crt", .key = stem + "key", .client_ca = stem + "ca"};
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

}  // namespace
}  // namespace gemmd
