// The callers file: its lines, its bounds, and how credentials are found in it.
#include "server/identity/callers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/identity/connection_number.h"
#include "server/identity/lines.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Of "s3cret", by sha256sum.
constexpr char kHash[] = "1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0";

std::string RefusalOf(absl::string_view text) {
  const absl::StatusOr<Callers> callers = Callers::Parse(text);
  EXPECT_EQ(callers.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(callers.status().message());
}

TEST(CertificateSubject, ItsCommonNamesAreCounted) {
  EXPECT_EQ(CountCommonNames(""), 0);
  EXPECT_EQ(CountCommonNames("OU=CN=x,O=y"), 0);
  EXPECT_EQ(CountCommonNames("CN="), 1);
  EXPECT_EQ(CountCommonNames("CN=alice\\,CN=bob\\+CN=eve,OU=team"), 1);
  EXPECT_EQ(CountCommonNames("CN=ends with a backslash\\\\,CN=bob"), 2);
  EXPECT_EQ(CountCommonNames("CN=alice,CN=Users,DC=corp,DC=com"), 2);
  EXPECT_EQ(CountCommonNames("OU=team+CN=alice,CN=bob"), 2);
}

TEST(TokenHash, IsSha256) {
  const std::optional<TokenHash> hash = ParseTokenHash(kHash);
  ASSERT_TRUE(hash.has_value());
  EXPECT_TRUE(SameHash(*hash, HashToken("s3cret")));
  EXPECT_FALSE(SameHash(*hash, HashToken("s3creT")));
}

TEST(TokenHash, IsSixtyFourHexadecimalDigits) {
  EXPECT_FALSE(ParseTokenHash("").has_value());
  EXPECT_FALSE(ParseTokenHash(std::string(63, 'a')).has_value());
  EXPECT_FALSE(ParseTokenHash(std::string(65, 'a')).has_value());
  EXPECT_FALSE(ParseTokenHash(absl::StrCat(std::string(63, 'a'), "g")).has_value());
  EXPECT_TRUE(ParseTokenHash(std::string(64, 'A')).has_value());
}

TEST(TokenHash, ADifferenceInAnyByteCounts) {
  const TokenHash hash = HashToken("x");
  for (size_t i = 0; i < hash.size(); ++i) {
    TokenHash other = hash;
    other[i] ^= 1;
    EXPECT_FALSE(SameHash(hash, other)) << i;
  }
}

TEST(Callers, AreFoundByTheirTokens) {
  const auto callers = Callers::Parse(
      absl::StrCat("# who\n\n  alice\tcall,matrices   sha256:", kHash, "  # hers\r\n"));
  ASSERT_TRUE(callers.ok()) << callers.status();
  EXPECT_EQ(callers->size(), 1);
  const CallerPtr alice = callers->FindToken("s3cret");
  ASSERT_NE(alice, nullptr);
  EXPECT_EQ(alice->name, "alice");
  EXPECT_THAT(alice->roles.Names(), ElementsAre("call", "matrices"));
  EXPECT_EQ(callers->FindToken("s3cret "), nullptr);
  EXPECT_EQ(callers->FindToken(""), nullptr);
  EXPECT_EQ(callers->FindToken(kHash), nullptr) << "the hash is no token";
  EXPECT_EQ(callers->FindCertificate("alice"), nullptr) << "nor the name a certificate";
}

TEST(Callers, AreFoundByTheirCertificates) {
  const auto callers = Callers::Parse("bob all certificate:bob.example\n* call certificate:*\n");
  ASSERT_TRUE(callers.ok()) << callers.status();
  EXPECT_EQ(callers->FindCertificate("bob.example")->name, "bob");
  EXPECT_EQ(callers->FindCertificate("bob.example")->roles, RoleSet::All());
  EXPECT_EQ(callers->FindCertificate("eve")->name, "eve");
  EXPECT_THAT(callers->FindCertificate("eve")->roles.Names(), ElementsAre("call"));
  EXPECT_EQ(callers->FindCertificate("*"), nullptr);
  EXPECT_EQ(callers->FindCertificate("with space"), nullptr);
  EXPECT_EQ(callers->FindCertificate(std::string(129, 'a')), nullptr);
}

TEST(Callers, WithoutALineForAllNoOtherCertificateIsKnown) {
  const auto callers = Callers::Parse("bob all certificate:bob.example\n");
  ASSERT_TRUE(callers.ok());
  EXPECT_EQ(callers->FindCertificate("eve"), nullptr);
}

TEST(Callers, OneNameMayHaveSeveralCredentials) {
  const auto callers = Callers::Parse(
      absl::StrCat("alice call sha256:", kHash, "\nalice benchmark certificate:alice\n"));
  ASSERT_TRUE(callers.ok());
  EXPECT_THAT(callers->FindToken("s3cret")->roles.Names(), ElementsAre("call"));
  EXPECT_THAT(callers->FindCertificate("alice")->roles.Names(), ElementsAre("benchmark"));
}

TEST(Callers, WrongLinesAreNamedAndCredentialsNotQuoted) {
  const std::string good = absl::StrCat("alice call sha256:", kHash);
  EXPECT_THAT(RefusalOf("# x\nalice call\n"), AllOf(HasSubstr("line 2"), HasSubstr("2 words")));
  EXPECT_THAT(RefusalOf(good + " more"), HasSubstr("4 words"));
  EXPECT_THAT(RefusalOf("alice cal sha256:00"),
              AllOf(HasSubstr("3 bytes is unknown"), HasSubstr("call, matrices, benchmark")));
  EXPECT_THAT(RefusalOf("alice call, sha256:00"), HasSubstr("0 bytes is unknown"));
  EXPECT_THAT(RefusalOf("alice call sha256:s3cret"),
              AllOf(HasSubstr("64 hexadecimal digits"), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(RefusalOf("alice call s3cret"),
              AllOf(HasSubstr("unknown kind of credential"), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(RefusalOf(std::string(129, 'a') + " call sha256:00"), HasSubstr("129 bytes"));
  EXPECT_THAT(RefusalOf(good + "\n" + good), AllOf(HasSubstr("line 2"), HasSubstr("same token")));
  EXPECT_THAT(RefusalOf("a call certificate:x\nb call certificate:x"), HasSubstr("line 2"));
  EXPECT_THAT(RefusalOf("* call sha256:" + std::string(kHash)), HasSubstr("certificate:* alone"));
  EXPECT_THAT(RefusalOf("a call certificate:*"), HasSubstr("name * alone"));
  EXPECT_THAT(RefusalOf("* call certificate:*\n* all certificate:*"), HasSubstr("line 2"));
}

TEST(Callers, ATokenInAnyColumnIsNotQuoted) {
  const std::string token = absl::StrCat("gemmd_", std::string(150, 's'));
  for (const std::string& line :
       {absl::StrCat(token, " call sha256:", kHash), absl::StrCat("alice ", token, " sha256:00"),
        absl::StrCat("alice call,", token, " sha256:00"), absl::StrCat("alice call ", token),
        absl::StrCat("alice call certificate:", token), absl::StrCat(token, " ", token)}) {
    EXPECT_THAT(RefusalOf(line + "\n"), AllOf(HasSubstr("line 1"), Not(HasSubstr("sss"))));
  }
}

TEST(Callers, AWildcardGivesNobodyTheNameOfALine) {
  const auto callers = Callers::Parse(
      absl::StrCat("alice call sha256:", kHash, "\ntrainer all certificate:trainer.example\n",
                   "same call certificate:same\n* call certificate:*\n"));
  ASSERT_TRUE(callers.ok()) << callers.status();
  EXPECT_EQ(callers->FindCertificate("alice"), nullptr);
  EXPECT_EQ(callers->FindCertificate("trainer"), nullptr);
  EXPECT_EQ(callers->FindCertificate("trainer.example")->name, "trainer");
  EXPECT_EQ(callers->FindCertificate("same")->name, "same");
  EXPECT_EQ(callers->FindCertificate("eve")->name, "eve");
}

TEST(Callers, AFileWithoutACredentialOrCutInItsLastLineIsRefused) {
  for (const char* text : {"", "\n", "# nobody\n"}) {
    EXPECT_THAT(RefusalOf(text), HasSubstr("no credential")) << text;
  }
  const std::string whole = "alice all certificate:a.example\n";
  EXPECT_TRUE(Callers::Parse(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) RefusalOf(whole.substr(0, size));
}

TEST(Callers, ACommentBeginsAtTheLineOrAfterWhiteSpace) {
  const auto callers =
      Callers::Parse("#x\n  # y\nops call certificate:team#1 # z\nother all certificate:a\t#\n");
  ASSERT_TRUE(callers.ok()) << callers.status();
  EXPECT_EQ(callers->FindCertificate("team"), nullptr);
  ASSERT_NE(callers->FindCertificate("team#1"), nullptr);
  EXPECT_EQ(callers->FindCertificate("team#1")->name, "ops");
  EXPECT_EQ(callers->FindCertificate("a")->name, "other");
}

TEST(Callers, TheFileIsBounded) {
  EXPECT_THAT(RefusalOf(std::string(kMaxFileBytes + 1, '\n')), HasSubstr("allowed: up to"));
  std::string lines;
  for (size_t i = 0; i <= kMaxFileLines; ++i) {
    absl::StrAppend(&lines, "c call certificate:", i, "\n");
  }
  EXPECT_THAT(RefusalOf(lines), HasSubstr(absl::StrCat("more than ", kMaxFileLines)));
}

}  // namespace
}  // namespace gemmd
