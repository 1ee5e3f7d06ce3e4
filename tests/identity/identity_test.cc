// Who is known, what that allows, and files that change.
#include "server/identity/identity.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/identity/connection_number.h"
#include "server/listening/exposure.h"
#include "server/logs/identity_log.h"
#include "server/rpc/context/method.h"
#include "tests/identity/certificates.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Of "s3cret".
constexpr char kAliceLine[] =
    "alice call,metrics "
    "sha256:1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0\n";
constexpr char kMultiply[] = "/gemm.v1.GemmService/Multiply";
constexpr char kHealth[] = "/grpc.health.v1.Health/Check";

// The wall clock of the server, where a test sets it.
absl::Time wall_clock;

class IdentityTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) {
    return absl::StrCat(testing::TempDir(), "/identity_test.",
                        testing::UnitTest::GetInstance()->current_test_info()->name(), ".", name);
  }

  std::string Write(const std::string& name, absl::string_view text) {
    WriteFileAtOnce(Path(name), text);
    return Path(name);
  }

  absl::StatusOr<std::unique_ptr<Identity>> Make(IdentityOptions options) {
    return Identity::Create(std::move(options),
                            [this](const Refusal& refusal) { refused_.push_back(refusal.code); });
  }

  std::vector<absl::StatusCode> refused_;
};

TEST_F(IdentityTest, WithoutOptionsEverybodyMayDoEverything) {
  const auto identity = *Make({});
  EXPECT_FALSE(identity->asks());
  for (const std::string& method : MethodNames()) {
    EXPECT_TRUE(identity->Check("/gemm.v1.GemmService/" + method, {}).ok()) << method;
  }
  EXPECT_EQ((*identity->Identify({.authorization = "Bearer whatever"}))->name, "");
  EXPECT_THAT(refused_, IsEmpty());
}

TEST_F(IdentityTest, EveryMethodOfTheContractHasARule) {
  std::set<std::string> seen;
  for (const auto& names : {MethodNames(), InferenceMethodNames()}) {
    for (const std::string& method : names) {
      EXPECT_NE(RuleForMethod(method).who, MethodRule::Who::kNobody)
          << method << " has no row in server/identity/method_rules.cc: who may call it?";
      EXPECT_TRUE(seen.insert(method).second) << method << " is a method of two services";
    }
  }
}

TEST_F(IdentityTest, EveryMethodTakesItsOwnRoleAndNoOther) {
  // Without one: any will do.
  const std::map<std::string, std::optional<CallerRole>> wanted = {
      {"Multiply", CallerRole::kCall},         {"MultiplyUnary", CallerRole::kCall},
      {"PutMatrix", CallerRole::kMatrices},    {"GetMatrix", CallerRole::kMatrices},
      {"ListMatrices", CallerRole::kMatrices}, {"DeleteMatrix", CallerRole::kMatrices},
      {"ListKernels", CallerRole::kCall},      {"RankKernels", CallerRole::kCall},
      {"GetServerInfo", std::nullopt},         {"Benchmark", CallerRole::kBenchmark},
      {"ReloadTuning", CallerRole::kAdmin},    {"ListTraffic", CallerRole::kBenchmark}};
  std::string lines;
  for (const CallerRole role : kCallerRoles) {
    absl::StrAppend(&lines, Name(role), " ", Name(role), " certificate:", Name(role), "\n");
  }
  const auto identity = *Make({.callers_file = Write("callers", lines)});
  for (const std::string& method : MethodNames()) {
    ASSERT_EQ(wanted.count(method), 1) << method;
    for (const CallerRole role : kCallerRoles) {
      const Credentials shown = {.certificate_name = Name(role)};
      const bool may = wanted.at(method).value_or(role) == role;
      const auto code = may ? absl::StatusCode::kOk : absl::StatusCode::kPermissionDenied;
      EXPECT_EQ(identity->Check("/gemm.v1.GemmService/" + method, shown).status().code(), code)
          << method << " for " << Name(role);
      EXPECT_EQ(identity->CallerOfMethod(method, shown).status().code(), code)
          << method << " for " << Name(role);
    }
  }
}

TEST_F(IdentityTest, TheMethodsOfTheInferenceProtocolTakeTheRoleCallAndThoseOfTheServerNone) {
  const auto identity = *Make({.callers_file = Write("callers",
                                                     "anna call certificate:anna\n"
                                                     "carl metrics certificate:carl\n")});
  for (const std::string& method : InferenceMethodNames()) {
    const std::string path = "/inference.GRPCInferenceService/" + method;
    EXPECT_TRUE(identity->Check(path, {.certificate_name = "anna"}).ok()) << method;
    const bool any = method.rfind("Server", 0) == 0;
    const auto code = any ? absl::StatusCode::kOk : absl::StatusCode::kPermissionDenied;
    EXPECT_EQ(identity->Check(path, {.certificate_name = "carl"}).status().code(), code) << method;
    EXPECT_EQ(identity->Check(path, {}).status().code(), absl::StatusCode::kUnauthenticated);
  }
}

TEST_F(IdentityTest, AMethodOrAServiceWithoutARuleIsRefusedToAll) {
  const auto open = *Make({});
  const auto asks = *Make(
      {.callers_file = Write("callers", absl::StrCat(kAliceLine, "root all certificate:root\n"))});
  for (const char* path :
       {"/gemm.v1.GemmService/Forgotten", "/gemm.v1.AdminService/Forgotten",
        "/gemm.v2.GemmService/Multiply", "/other.Service/Method", "/gemm.v1.GemmService/ModelInfer",
        "/inference.GRPCInferenceService/Multiply",
        "/inference.GRPCInferenceService/RepositoryModelLoad", "/grpc.lb.v1.LoadBalancer/Balance",
        "gemm.v1.GemmService/Multiply", "/", ""}) {
    EXPECT_EQ(open->Check(path, {}).status().code(), absl::StatusCode::kUnimplemented) << path;
    EXPECT_EQ(asks->Check(path, {.certificate_name = "root"}).status().code(),
              absl::StatusCode::kUnimplemented)
        << path;
    EXPECT_EQ(asks->Check(path, {}).status().code(), absl::StatusCode::kUnauthenticated) << path;
  }
  EXPECT_EQ(open->CallerOfMethod("Forgotten", {}).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(IdentityTest, ATokenIsOfTheFormBearer) {
  const auto identity = *Make({.callers_file = Write("callers", kAliceLine)});
  for (const char* good : {"Bearer s3cret", "bearer s3cret"}) {
    EXPECT_TRUE(identity->Check(kMultiply, {.authorization = good}).ok()) << good;
  }
  const std::vector<std::string> wrong = {"",
                                          "s3cret",
                                          "Bearer",
                                          "Bearer ",
                                          "Bearer  s3cret",
                                          "Bearer s3cret ",
                                          "Basic s3cret",
                                          "Bearer other",
                                          "Bearer " + std::string(1025, 's')};
  for (const std::string& bad : wrong) {
    EXPECT_EQ(identity->Check(kMultiply, {.authorization = bad}).status().code(),
              absl::StatusCode::kUnauthenticated)
        << bad;
  }
  EXPECT_THAT(refused_, SizeIs(9));
}

TEST_F(IdentityTest, AWrongTokenIsNotHealedByACertificate) {
  const auto identity =
      *Make({.callers_file = Write("callers", absl::StrCat(kAliceLine, "b all certificate:b\n"))});
  EXPECT_TRUE(identity->Check(kMultiply, {.certificate_name = "b"}).ok());
  EXPECT_EQ(identity->Check(kMultiply, {.authorization = "Bearer x", .certificate_name = "b"})
                .status()
                .code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(IdentityTest, RefusalsNameTheRoleAndNoSecret) {
  const auto identity = *Make({.callers_file = Write("callers", kAliceLine)});
  const absl::Status status =
      identity->Check("/gemm.v1.GemmService/Benchmark", {.authorization = "Bearer s3cret"})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("needs the role benchmark"));
  EXPECT_THAT(status.message(), HasSubstr("\"alice\" has call, metrics"));
  EXPECT_THAT(identity->Check(kMultiply, {.authorization = "Bearer s3cre"}).status().message(),
              Not(HasSubstr("s3cre")));
}

TEST_F(IdentityTest, ServicesOfGrpcFollowTheirRules) {
  IdentityOptions options = {.callers_file = Write("callers", kAliceLine)};
  const auto code = [](const Identity& identity, absl::string_view path,
                       std::optional<absl::string_view> authorization = std::nullopt) {
    return identity.Check(path, {.authorization = authorization}).status().code();
  };
  constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
  constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  const auto defaults = *Make(options);
  EXPECT_EQ(code(*defaults, kHealth), absl::StatusCode::kUnauthenticated)
      << "a stranger may hold the call open without its message";
  EXPECT_EQ(code(*defaults, kHealth, "Bearer s3cret"), absl::StatusCode::kOk);
  EXPECT_EQ(code(*defaults, kWatch), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code(*defaults, kWatch, "Bearer s3cret"), absl::StatusCode::kOk);
  EXPECT_EQ(code(**Make({}), kWatch), absl::StatusCode::kOk) << "where nobody is asked";
  EXPECT_EQ(code(*defaults, kReflection), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code(*defaults, kReflection, "Bearer s3cret"), absl::StatusCode::kOk);
  EXPECT_EQ(code(**Make({}), kHealth), absl::StatusCode::kOk) << "where nobody is asked";
  options.services = {.health = *ParseMethodRule("anyone"), .reflection = *ParseMethodRule("off")};
  const auto set = *Make(options);
  EXPECT_EQ(code(*set, kHealth), absl::StatusCode::kOk);
  EXPECT_EQ(code(*set, kWatch), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code(*set, kReflection, "Bearer s3cret"), absl::StatusCode::kUnimplemented);
}

TEST_F(IdentityTest, ScrapesNeedTheRoleMetrics) {
  const auto identity = *Make({.callers_file = Write("callers", kAliceLine)});
  EXPECT_TRUE(identity->CheckScrape("Bearer s3cret").ok());
  EXPECT_EQ(identity->CheckScrape(std::nullopt).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(identity->CheckScrape("Bearer x").code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(IdentityTest, AChangedCallersFileIsTakenAndAWrongOneIsNot) {
  const std::string file = Write("callers", kAliceLine);
  const auto identity = *Make({.callers_file = file});
  EXPECT_THAT(identity->ReloadChanged(), IsEmpty());
  EXPECT_THAT(identity->ReloadChanged(/*all=*/true), SizeIs(1));

  WriteFileAtOnce(file, "nonsense\n");
  const auto wrong = identity->ReloadChanged();
  ASSERT_THAT(wrong, SizeIs(1));
  EXPECT_THAT(wrong[0].status.message(), HasSubstr("line 1"));
  EXPECT_TRUE(identity->Check(kMultiply, {.authorization = "Bearer s3cret"}).ok());
  EXPECT_THAT(identity->ReloadChanged(), IsEmpty()) << "told once";

  WriteFileAtOnce(file, "b all certificate:b\n");
  EXPECT_TRUE(identity->ReloadChanged().at(0).status.ok());
  EXPECT_FALSE(identity->Check(kMultiply, {.authorization = "Bearer s3cret"}).ok());

  std::remove(file.c_str());
  EXPECT_FALSE(identity->ReloadChanged().at(0).status.ok());
  EXPECT_TRUE(identity->Check(kMultiply, {.certificate_name = "b"}).ok());
}

TEST_F(IdentityTest, ACertificateIsLookedAtBeforeEveryCall) {
  const TestCa ca;
  const KeyedCertificate issued = ca.Issue({.common_name = "b"});
  const CertificateValidity validity = ValidityOf(issued.certificate);
  EXPECT_EQ(validity.until - validity.from, absl::Hours(25));

  const auto identity =
      *Make({.callers_file = Write("callers", absl::StrCat(kAliceLine, "b all certificate:b\n")),
             .services = {.health = {.who = MethodRule::Who::kAnyone}},
             .now = [] { return wall_clock; }});
  const Credentials shown = {.certificate_name = "b", .certificate_validity = validity};
  const Credentials with_token = {
      .authorization = "Bearer s3cret", .certificate_name = "b", .certificate_validity = validity};
  const auto expect_all = [&](absl::StatusCode code, absl::string_view when) {
    for (const Credentials& credentials : {shown, with_token}) {
      EXPECT_EQ(identity->Check(kMultiply, credentials).status().code(), code) << when;
      EXPECT_EQ(identity->Check(kHealth, credentials).status().code(), code) << when;
      EXPECT_EQ(identity->CallerOfMethod("Multiply", credentials).status().code(), code) << when;
    }
  };
  wall_clock = validity.from - absl::Nanoseconds(1);
  expect_all(absl::StatusCode::kUnauthenticated, "before it is valid");
  wall_clock = validity.from;
  expect_all(absl::StatusCode::kOk, "as it becomes valid");
  wall_clock = validity.until - absl::Nanoseconds(1);
  expect_all(absl::StatusCode::kOk, "before it expires");
  EXPECT_THAT(refused_, SizeIs(6));
  wall_clock = validity.until;
  expect_all(absl::StatusCode::kUnauthenticated, "as it expires");
  EXPECT_THAT(refused_, SizeIs(12));
  EXPECT_THAT(identity->Check(kMultiply, shown).status().message(),
              AllOf(HasSubstr(absl::FormatTime(validity.until, absl::UTCTimeZone())),
                    HasSubstr("connect again")));
  EXPECT_TRUE(identity->Check(kMultiply, {.authorization = "Bearer s3cret"}).ok())
      << "without a certificate";
}

TEST_F(IdentityTest, ACertificateThatCannotBeReadIsNeverValid) {
  for (const absl::string_view pem : {"", "-----BEGIN CERTIFICATE-----\nAAAA\n"}) {
    const CertificateValidity validity = ValidityOf(pem);
    EXPECT_EQ(validity.from, absl::InfiniteFuture());
    EXPECT_EQ(validity.until, absl::InfinitePast());
  }
}

TEST_F(IdentityTest, AFileThatCouldNotBeReadIsReadAtTheNextLook) {
  const std::string file = Write("callers", kAliceLine);
  const auto identity = *Make({.callers_file = file});
  WriteFileAtOnce(file, "b all certificate:b\n");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto failed = identity->ReloadChanged();
  const auto failed_again = identity->ReloadChanged();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed[0].status.code(), absl::StatusCode::kUnavailable) << failed[0].status;
  EXPECT_THAT(failed_again, IsEmpty()) << "told once";
  EXPECT_TRUE(identity->Check(kMultiply, {.authorization = "Bearer s3cret"}).ok());

  const auto read = identity->ReloadChanged();
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_TRUE(read[0].status.ok()) << read[0].status;
  EXPECT_FALSE(identity->Check(kMultiply, {.authorization = "Bearer s3cret"}).ok());
  EXPECT_THAT(identity->ReloadChanged(), IsEmpty());
}

// As `generate > callers` does it: the file is empty, then cut anywhere, then
// whole.
TEST_F(IdentityTest, AFileThatIsWrittenInPlaceIsTakenWhole) {
  const std::string file = Write("callers", kAliceLine);
  const auto identity = *Make({.callers_file = file});
  const std::string next = absl::StrCat(kAliceLine, "b all certificate:b.example\n");
  for (const size_t size : {size_t{0}, size_t{20}, next.size() - 8, next.size() - 1}) {
    std::ofstream(file, std::ios::trunc) << next.substr(0, size);
    for (const Reload& reload : identity->ReloadChanged()) EXPECT_FALSE(reload.status.ok()) << size;
    EXPECT_TRUE(identity->Check(kMultiply, {.authorization = "Bearer s3cret"}).ok()) << size;
  }
  std::ofstream(file, std::ios::trunc) << next;
  EXPECT_TRUE(identity->ReloadChanged(/*all=*/true).at(0).status.ok());
  EXPECT_TRUE(identity->Check(kMultiply, {.certificate_name = "b.example"}).ok());
}

TEST_F(IdentityTest, AKeyWithoutItsCertificateIsNotTaken) {
  const TestCa ca;
  const KeyedCertificate first = ca.Issue({.common_name = "s"});
  const KeyedCertificate second = ca.Issue({.common_name = "s"});
  const TlsPaths paths = {.certificate = Write("certificate", first.certificate),
                          .key = Write("key", first.key),
                          .client_ca = Write("ca", ca.certificate())};
  const auto identity = *Make({.tls = paths});
  EXPECT_EQ(identity->tls().number, 1);

  WriteFileAtOnce(paths.certificate, second.certificate);
  const absl::Status half = identity->ReloadChanged().at(0).status;
  EXPECT_THAT(half.message(), HasSubstr("not the key of the certificate"));
  EXPECT_EQ(identity->tls().number, 1);
  EXPECT_EQ(identity->tls().material->certificate, first.certificate);

  WriteFileAtOnce(paths.key, second.key);
  EXPECT_TRUE(identity->ReloadChanged().at(0).status.ok());
  EXPECT_EQ(identity->tls().number, 2);
  EXPECT_EQ(identity->tls().material->certificate, second.certificate);
}

// gRPC would go on with what it had, and with a CA that was taken away, without
// a word.
TEST_F(IdentityTest, TlsFilesThatGrpcWouldRefuseAreNotTaken) {
  const TestCa ca;
  const TestCa other_ca;
  const KeyedCertificate good = ca.Issue({.common_name = "s"});
  const KeyedCertificate weak = ca.Issue({.common_name = "s", .rsa_bits = 512});
  const std::string junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  const TlsPaths paths = {.certificate = Write("certificate", good.certificate),
                          .key = Write("key", good.key),
                          .client_ca = Write("ca", ca.certificate())};
  const auto identity = *Make({.tls = paths});
  const auto reload = [&](const std::string& certificate, const std::string& key,
                          const std::string& client_ca) {
    WriteFileAtOnce(paths.certificate, certificate);
    WriteFileAtOnce(paths.key, key);
    WriteFileAtOnce(paths.client_ca, client_ca);
    return identity->ReloadChanged().at(0).status;
  };
  const absl::Status refused = reload(weak.certificate, weak.key, ca.certificate());
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("--tls-certificate"), HasSubstr("too small")));
  EXPECT_THAT(reload(good.certificate + junk, good.key, ca.certificate()).message(),
              AllOf(HasSubstr("--tls-certificate"), HasSubstr("certificate 2")));
  EXPECT_THAT(reload(good.certificate, good.key, ca.certificate() + junk + other_ca.certificate())
                  .message(),
              AllOf(HasSubstr("--tls-client-ca"), HasSubstr("certificate 2")));
  EXPECT_EQ(identity->tls().number, 1);
  EXPECT_TRUE(reload(good.certificate + ca.certificate(), good.key,
                     absl::StrCat("text\n", ca.certificate(), other_ca.certificate()))
                  .ok());
  EXPECT_EQ(identity->tls().number, 2);
}

TEST_F(IdentityTest, WrongFilesAreRefusedAtTheStart) {
  const TestCa ca;
  const KeyedCertificate good = ca.Issue({.common_name = "s"});
  const std::string certificate = Write("certificate", good.certificate);
  const std::string key = Write("key", good.key);
  const std::string text = Write("text", "no PEM\n");
  const auto refusal = [this](IdentityOptions options) {
    return std::string(Make(std::move(options)).status().message());
  };
  EXPECT_THAT(refusal({.tls = {.certificate = certificate}}), HasSubstr("--tls-key"));
  EXPECT_THAT(refusal({.tls = {.key = key}}), HasSubstr("--tls-certificate"));
  EXPECT_THAT(refusal({.tls = {.client_ca = certificate}}), HasSubstr("--tls-client-ca"));
  EXPECT_THAT(refusal({.tls = {.certificate = text, .key = key}}), HasSubstr("no certificate"));
  EXPECT_THAT(refusal({.tls = {.certificate = certificate, .key = text}}), HasSubstr("no key"));
  EXPECT_THAT(refusal({.tls = {.certificate = certificate, .key = key, .client_ca = text}}),
              HasSubstr("--tls-client-ca"));
  EXPECT_THAT(refusal({.callers_file = Path("missing")}), HasSubstr("No such file"));
  EXPECT_THAT(refusal({.callers_file = testing::TempDir()}), HasSubstr("not a regular file"));
}

TEST_F(IdentityTest, ListeningWideNeedsTlsAndCallersOrTheFlag) {
  const auto open = *Make({});
  for (const char* own : {"127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1", "[0:0::1]:1",
                          "unix:/x", "127.0.0.1:1,unix:/x,[::1]:1"}) {
    EXPECT_THAT(*CheckExposure({.address = own}, *open), IsEmpty()) << own;
  }
  for (const char* wide :
       {"0.0.0.0:1", "[::]:1", "192.0.2.1:1", "gemmd.example:1", "127.example:1",
        "127.0.0.1:1,0.0.0.0:1", "unix:/x,192.0.2.1:1", "192.0.2.1:1,127.0.0.1:1,unix:/x"}) {
    EXPECT_EQ(CheckExposure({.address = wide}, *open).status().code(),
              absl::StatusCode::kInvalidArgument)
        << wide;
    EXPECT_THAT(*CheckExposure({.address = wide, .insecure = Insecure::kAll}, *open), SizeIs(2))
        << wide;
    // What is allowed of two things does not allow the other one.
    EXPECT_THAT(CheckExposure({.address = wide, .insecure = Insecure::kPlaintext}, *open)
                    .status()
                    .message(),
                AllOf(HasSubstr("by anybody"), Not(HasSubstr("without TLS"))));
    EXPECT_THAT(CheckExposure({.address = wide, .insecure = Insecure::kAnonymous}, *open)
                    .status()
                    .message(),
                AllOf(HasSubstr("without TLS"), Not(HasSubstr("by anybody"))));
  }
  EXPECT_FALSE(CheckExposure({.address = "unix:/x", .metrics_address = "0.0.0.0:1"}, *open).ok());

  const TestCa ca;
  const KeyedCertificate good = ca.Issue({.common_name = "s"});
  IdentityOptions options = {.callers_file = Write("callers", kAliceLine)};
  const Listens everywhere = {.address = "0.0.0.0:1", .metrics_address = "0.0.0.0:2"};
  EXPECT_THAT(CheckExposure(everywhere, **Make(options)).status().message(),
              HasSubstr("without TLS"));
  Listens behind_proxy = everywhere;
  behind_proxy.insecure = Insecure::kPlaintext;
  EXPECT_THAT(*CheckExposure(behind_proxy, **Make(options)), SizeIs(1));
  options.tls = {.certificate = Write("certificate", good.certificate),
                 .key = Write("key", good.key)};
  const auto closed = *Make(options);
  EXPECT_THAT(*CheckExposure(everywhere, *closed), IsEmpty());
  EXPECT_TRUE(ScrapesNeedToken(everywhere, *closed));
  EXPECT_FALSE(
      ScrapesNeedToken({.address = "0.0.0.0:1", .metrics_address = "127.0.0.1:2"}, *closed));
}

TEST_F(IdentityTest, SaysWhichFilesOthersMayChangeOrRead) {
  const TestCa ca;
  const KeyedCertificate good = ca.Issue({.common_name = "s"});
  const IdentityOptions options = {.callers_file = Write("callers", kAliceLine),
                                   .tls = {.certificate = Write("certificate", good.certificate),
                                           .key = Write("key", good.key)}};
  const auto set = [](const std::string& path, mode_t mode) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0) << path;
  };
  set(options.tls.certificate, 0644);
  set(options.tls.key, 0640);
  set(options.callers_file, 0644);
  EXPECT_THAT(PermissionsTooWide(options), IsEmpty());
  set(options.tls.key, 0644);
  set(options.callers_file, 0620);
  const std::vector<std::string> sentences = PermissionsTooWide(options);
  ASSERT_THAT(sentences, SizeIs(2));
  EXPECT_THAT(sentences[0],
              AllOf(HasSubstr("--callers-file"), HasSubstr("0620"), HasSubstr("wanted: 0600")));
  EXPECT_THAT(sentences[1],
              AllOf(HasSubstr("--tls-key"), HasSubstr("0644"), HasSubstr("wanted: 0640")));
}

}  // namespace
}  // namespace gemmd
