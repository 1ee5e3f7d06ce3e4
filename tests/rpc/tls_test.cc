// TLS and mutual TLS, with certificates made here: who gets in, under which name, and what
// happens when files change under load.
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "grpc/grpc_security.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "server/identity/callers.h"
#include "server/identity/connection_number.h"
#include "server/rpc/context/method.h"
#include "tests/identity/certificates.h"
#include "tests/rpc/host_matrix.h"
#include "tests/rpc/raw_client.h"
#include "tests/rpc/stream_client.h"
#include "tests/rpc/test_server.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using grpc::StatusCode;

std::string TokenLine(const std::string& name, const std::string& roles, const std::string& token) {
  std::string hex;
  for (const uint8_t byte : HashToken(token))
    absl::StrAppend(&hex, absl::Hex(byte, absl::kZeroPad2));
  return absl::StrCat(name, " ", roles, " sha256:", hex, "\n");
}

// The server's wall clock, where a test sets it.
std::atomic<int64_t> wall_seconds;
absl::Time WallClock() { return absl::FromUnixSeconds(wall_seconds); }
void SetWallClock(absl::Time time) { wall_seconds = absl::ToUnixSeconds(time); }

// The answer of one GetServerInfo on a connection of its own.
struct Answer {
  StatusCode code = StatusCode::UNKNOWN;
  std::string caller;
  std::string server_certificate;  // PEM
  bool resumed = false;            // the session of an earlier connection
};

class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    const std::string base =
        absl::StrCat(testing::TempDir(), "/tls_test.",
                     testing::UnitTest::GetInstance()->current_test_info()->name());
    options_.identity.callers_file = base + ".callers";
    options_.identity.tls = {.certificate = base + ".crt", .key = base + ".key"};
    client_ca_file_ = base + ".clients.crt";
    WriteFileAtOnce(client_ca_file_, client_ca_.certificate());
    WriteFileAtOnce(options_.identity.callers_file, absl::StrCat(TokenLine("alice", "all", "right"),
                                                                 "bob call certificate:bob.cn\n"));
    Install(server_ca_.Issue({.common_name = "gemmd", .dns_name = "localhost"}));
  }

  void Install(const KeyedCertificate& issued) {
    WriteFileAtOnce(options_.identity.tls.certificate, issued.certificate);
    WriteFileAtOnce(options_.identity.tls.key, issued.key);
  }

  void Start() {
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  void StartMutual(bool required) {
    options_.identity.tls.client_ca = client_ca_file_;
    options_.identity.require_client_certificate = required;
    Start();
  }

  grpc::SslCredentialsOptions Trusting(const TestCa& ca) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ca.certificate();
    return options;
  }

  grpc::SslCredentialsOptions Showing(const KeyedCertificate& shown) const {
    grpc::SslCredentialsOptions options = Trusting(server_ca_);
    options.pem_cert_chain = shown.certificate;
    options.pem_private_key = shown.key;
    return options;
  }

  std::shared_ptr<grpc::Channel> Connect(std::shared_ptr<grpc::ChannelCredentials> credentials,
                                         grpc::ChannelArguments arguments = {}) {
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    return grpc::CreateCustomChannel(absl::StrCat("localhost:", server_->port()),
                                     std::move(credentials), arguments);
  }

  Answer Ask(const std::shared_ptr<grpc::Channel>& channel, const std::string& token = "") {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::GetServerInfoResponse info;
    const grpc::Status status =
        v1::GemmService::NewStub(channel)->GetServerInfo(&context, {}, &info);
    Answer answer = {.code = status.error_code(), .caller = info.caller().name()};
    if (context.auth_context() != nullptr) {
      for (const auto& resumed : context.auth_context()->FindPropertyValues("ssl_session_reused")) {
        answer.resumed = resumed == "true";
      }
    }
    if (status.ok() && context.auth_context() != nullptr) {
      for (const auto& pem : context.auth_context()->FindPropertyValues("x509_pem_cert")) {
        answer.server_certificate = std::string(pem.data(), pem.size());
      }
    }
    return answer;
  }

  Answer AskWith(const grpc::SslCredentialsOptions& options, const std::string& token = "") {
    return Ask(Connect(grpc::SslCredentials(options)), token);
  }

  // How a call of each method ends, with one empty message, all of them on one connection.
  std::map<std::string, StatusCode> CallEach(const grpc::SslCredentialsOptions& options,
                                             const std::string& token = "") {
    const auto channel = Connect(grpc::SslCredentials(options));
    std::map<std::string, StatusCode> codes;
    for (const std::string& path : EveryPath()) {
      RawCall call(channel, path, token);
      call.Write("");
      call.WritesDone();
      // Watch answers and goes on.
      std::string answer;
      const bool answered = call.Read(answer);
      if (answered) call.context().TryCancel();
      const StatusCode code = call.Finish().error_code();
      codes[path] = answered ? StatusCode::OK : code;
    }
    return codes;
  }

  // Every method of the contract, unary or a stream, and gRPC's own.
  static std::vector<std::string> EveryPath() {
    std::vector<std::string> paths = {
        "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};
    for (const std::string& method : MethodNames()) {
      paths.push_back("/gemm.v1.GemmService/" + method);
    }
    return paths;
  }

  const TestCa server_ca_;
  const TestCa client_ca_;
  std::string client_ca_file_;
  ServerOptions options_ = SmallServer();
  std::unique_ptr<Server> server_;
};

TEST_F(TlsTest, ATokenOverTls) {
  Start();
  const Answer answer = AskWith(Trusting(server_ca_), "right");
  EXPECT_EQ(answer.code, StatusCode::OK);
  EXPECT_EQ(answer.caller, "alice");
  EXPECT_EQ(AskWith(Trusting(server_ca_)).code, StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(AskWith(Trusting(server_ca_), "wrong").code, StatusCode::UNAUTHENTICATED);
}

TEST_F(TlsTest, AClientRefusesAServerThatItDoesNotTrust) {
  Start();
  EXPECT_EQ(AskWith(Trusting(client_ca_), "right").code, StatusCode::UNAVAILABLE) << "wrong CA";
  server_.reset();
  Install(server_ca_.Issue({.common_name = "gemmd", .dns_name = "elsewhere.example"}));
  Start();
  EXPECT_EQ(AskWith(Trusting(server_ca_), "right").code, StatusCode::UNAVAILABLE) << "wrong name";
  server_.reset();
  Install(server_ca_.Issue(
      {.common_name = "gemmd", .dns_name = "localhost", .valid_to = -absl::Minutes(1)}));
  Start();
  EXPECT_EQ(AskWith(Trusting(server_ca_), "right").code, StatusCode::UNAVAILABLE) << "expired";
}

TEST_F(TlsTest, APlainClientGetsNothing) {
  Start();
  EXPECT_EQ(Ask(Connect(grpc::InsecureChannelCredentials()), "right").code,
            StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, MutualTlsNamesTheCallerByItsCertificate) {
  StartMutual(/*required=*/true);
  const Answer bob = AskWith(Showing(client_ca_.Issue({.common_name = "bob.cn"})));
  EXPECT_EQ(bob.code, StatusCode::OK);
  EXPECT_EQ(bob.caller, "bob");
  EXPECT_EQ(AskWith(Showing(client_ca_.Issue({.common_name = "bob.cn"})), "right").caller, "alice")
      << "a token counts before the certificate";
}

TEST_F(TlsTest, MutualTlsRefusesWrongCertificates) {
  StartMutual(/*required=*/true);
  EXPECT_EQ(AskWith(Trusting(server_ca_), "right").code, StatusCode::UNAVAILABLE) << "none";
  EXPECT_EQ(AskWith(Showing(server_ca_.Issue({.common_name = "bob.cn"}))).code,
            StatusCode::UNAVAILABLE)
      << "wrong CA";
  EXPECT_EQ(
      AskWith(Showing(client_ca_.Issue({.common_name = "bob.cn", .valid_to = -absl::Minutes(1)})))
          .code,
      StatusCode::UNAVAILABLE)
      << "expired";
  EXPECT_EQ(AskWith(Showing(client_ca_.Issue({.common_name = "eve"}))).code,
            StatusCode::UNAUTHENTICATED)
      << "unknown name";
}

TEST_F(TlsTest, MutualTlsRefusesWrongCertificatesForEveryMethod) {
  StartMutual(/*required=*/true);
  const KeyedCertificate of_another_ca = server_ca_.Issue({.common_name = "bob.cn"});
  const KeyedCertificate expired =
      client_ca_.Issue({.common_name = "bob.cn", .valid_to = -absl::Minutes(1)});
  const KeyedCertificate of_another_name = client_ca_.Issue({.common_name = "eve"});
  struct Case {
    const char* what;
    grpc::SslCredentialsOptions shown;
    const char* token;
    StatusCode wanted;
  };
  // A right token does not heal a certificate that TLS refuses.
  for (const Case& test :
       {Case{"none", Trusting(server_ca_), "right", StatusCode::UNAVAILABLE},
        Case{"wrong CA", Showing(of_another_ca), "right", StatusCode::UNAVAILABLE},
        Case{"expired", Showing(expired), "right", StatusCode::UNAVAILABLE},
        Case{"wrong name", Showing(of_another_name), "", StatusCode::UNAUTHENTICATED},
        Case{"wrong token", Showing(of_another_name), "wrong", StatusCode::UNAUTHENTICATED}}) {
    for (const auto& [path, code] : CallEach(test.shown, test.token)) {
      EXPECT_EQ(code, test.wanted) << test.what << ": " << path;
    }
  }
}

TEST_F(TlsTest, MutualTlsLetsARightCertificateCallEveryMethod) {
  StartMutual(/*required=*/true);
  const KeyedCertificate right = client_ca_.Issue({.common_name = "bob.cn"});
  for (const auto& [path, code] : CallEach(Showing(right), "right")) {
    EXPECT_NE(code, StatusCode::UNAVAILABLE) << path;
    EXPECT_NE(code, StatusCode::UNAUTHENTICATED) << path;
    EXPECT_NE(code, StatusCode::PERMISSION_DENIED) << path;
  }
}

TEST_F(TlsTest, WhereCertificatesAreOptionalATokenMayStandIn) {
  StartMutual(/*required=*/false);
  EXPECT_EQ(AskWith(Trusting(server_ca_), "right").caller, "alice");
  EXPECT_EQ(AskWith(Trusting(server_ca_)).code, StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(AskWith(Showing(client_ca_.Issue({.common_name = "bob.cn"}))).caller, "bob");
  EXPECT_EQ(AskWith(Showing(server_ca_.Issue({.common_name = "bob.cn"}))).code,
            StatusCode::UNAVAILABLE);
}

TEST_F(TlsTest, WithoutACallersFileACertificateIsACaller) {
  options_.identity.callers_file.clear();
  StartMutual(/*required=*/true);
  EXPECT_EQ(AskWith(Showing(client_ca_.Issue({.common_name = "eve"}))).caller, "eve");
  EXPECT_EQ(AskWith(Showing(client_ca_.Issue({.common_name = "eve,CN=x+CN=y"}))).caller,
            "eve,CN=x+CN=y");
}

TEST_F(TlsTest, ACertificateWithSeveralCommonNamesIsRefused) {
  StartMutual(/*required=*/true);
  for (const CertificateSpec& spec :
       {CertificateSpec{.common_name = "bob.cn", .second_common_name = "eve"},
        CertificateSpec{.common_name = "Users", .second_common_name = "bob.cn"},
        CertificateSpec{.common_name = "bob.cn", .second_common_name = "bob.cn"}}) {
    EXPECT_EQ(AskWith(Showing(client_ca_.Issue(spec))).code, StatusCode::UNAUTHENTICATED)
        << spec.common_name << ", " << spec.second_common_name;
  }
}

// A client that keeps the sessions of its connections, and whose certificate expires by the
// server's clock, which the test sets. By the machine's clock it is valid throughout.
class ExpiringTlsTest : public TlsTest {
 protected:
  ExpiringTlsTest() : sessions_(grpc_ssl_session_cache_create_lru(16)) {
    options_.identity.now = &WallClock;
    SetWallClock(expires_ - absl::Seconds(5));
  }
  ~ExpiringTlsTest() override { grpc_ssl_session_cache_destroy(sessions_); }

  std::shared_ptr<grpc::Channel> Connect() {
    const grpc_arg sessions = grpc_ssl_session_cache_create_channel_arg(sessions_);
    grpc::ChannelArguments arguments;
    arguments.SetPointerWithVtable(sessions.key, sessions.value.pointer.p,
                                   sessions.value.pointer.vtable);
    return TlsTest::Connect(grpc::SslCredentials(Showing(shown_)), arguments);
  }

  const KeyedCertificate shown_ =
      client_ca_.Issue({.common_name = "bob.cn", .valid_to = absl::Hours(1)});
  const absl::Time expires_ = ValidityOf(shown_.certificate).until;
  grpc_ssl_session_cache* const sessions_;
};

TEST_F(ExpiringTlsTest, AResumedSessionDoesNotHealACertificateThatHasExpired) {
  for (const bool required : {true, false}) {
    SetWallClock(expires_ - absl::Seconds(5));
    StartMutual(required);
    ASSERT_EQ(Ask(Connect()).code, StatusCode::OK);
    const Answer before = Ask(Connect());
    EXPECT_EQ(before.code, StatusCode::OK);
    EXPECT_TRUE(before.resumed) << "or this test shows nothing";
    SetWallClock(expires_ + absl::Seconds(5));
    for (const char* token : {"", "right"}) {
      const Answer after = Ask(Connect(), token);
      EXPECT_TRUE(after.resumed) << "or this test shows nothing";
      EXPECT_EQ(after.code, StatusCode::UNAUTHENTICATED) << "token: '" << token << "'";
    }
    server_.reset();
  }
}

// TLS verifies nothing of a resumed session, and gRPC does not know its chain. So an authority that
// has expired is found by the handshake after this time.
TEST_F(ExpiringTlsTest, ASessionIsResumedForAMinuteAtMost) {
  StartMutual(/*required=*/true);
  SetWallClock(expires_ - absl::Minutes(10));
  ASSERT_EQ(Ask(Connect()).code, StatusCode::OK);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(Ask(Connect()).resumed) << round;
    SetWallClock(WallClock() + absl::Seconds(59));
    EXPECT_TRUE(Ask(Connect()).resumed) << round << ": its ticket is renewed";
    SetWallClock(WallClock() + absl::Seconds(1));
    const Answer verified = Ask(Connect());
    EXPECT_EQ(verified.code, StatusCode::OK) << round;
    EXPECT_FALSE(verified.resumed) << round;
  }
}

TEST_F(ExpiringTlsTest, AnOpenStreamBeginsNothingForACertificateThatHasExpired) {
  StartMutual(/*required=*/true);
  const auto channel = Connect();
  const auto stub = v1::GemmService::NewStub(channel);
  v1::Product product;
  *product.mutable_a() = GeneratedOperand({8, 8, gemm::DType::kF32}, 1);
  *product.mutable_b() = GeneratedOperand({8, 8, gemm::DType::kF32}, 2);
  StreamClient stream(*stub);
  stream.Header(1, product);
  EXPECT_EQ(stream.Wait(1).code(), StatusCode::OK);
  SetWallClock(expires_);
  EXPECT_EQ(Ask(channel).code, StatusCode::UNAUTHENTICATED) << "a call of the same connection";
  stream.Header(2, product);
  EXPECT_EQ(stream.Wait(2).code(), StatusCode::UNAUTHENTICATED);
  stream.HalfClose();
  EXPECT_TRUE(stream.Finish().ok()) << "the stream ends as its client wants";
}

TEST_F(TlsTest, ReloadsUnderLoadFailNoCall) {
  Start();
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0};
  std::atomic<int> connections{0};
  std::atomic<int> failures{0};
  const auto load = [&](bool reconnect) {
    auto channel = Connect(grpc::SslCredentials(Trusting(server_ca_)));
    while (!stop) {
      if (reconnect) {
        channel = Connect(grpc::SslCredentials(Trusting(server_ca_)));
        ++connections;
      }
      if (Ask(channel, "right").code != StatusCode::OK) ++failures;
      ++calls;
    }
  };
  std::vector<std::thread> threads;
  for (const bool reconnect : {false, true}) threads.emplace_back(load, reconnect);

  const std::string callers = TokenLine("alice", "all", "right");
  std::string last;
  for (int round = 0; round < 10; ++round) {
    const int calls_before = calls;
    const int connections_before = connections;
    const KeyedCertificate next =
        server_ca_.Issue({.common_name = "gemmd", .dns_name = "localhost"});
    // Half of the change first, as where two files are copied.
    WriteFileAtOnce(options_.identity.tls.certificate, next.certificate);
    server_->ReloadIdentity();
    WriteFileAtOnce(options_.identity.tls.key, next.key);
    WriteFileAtOnce(options_.identity.callers_file,
                    absl::StrCat(callers, TokenLine("r", "call", absl::StrCat("round", round))));
    server_->ReloadIdentity();
    last = next.certificate;
    while (failures == 0 && (calls < calls_before + 4 || connections < connections_before + 2)) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  const Answer now = AskWith(Trusting(server_ca_), "round9");
  const Answer before = AskWith(Trusting(server_ca_), "round8");
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0) << "of " << calls << " calls";
  EXPECT_EQ(now.code, StatusCode::OK);
  EXPECT_EQ(now.server_certificate, last);
  EXPECT_EQ(before.code, StatusCode::UNAUTHENTICATED);
}

}  // namespace
}  // namespace gemmd
