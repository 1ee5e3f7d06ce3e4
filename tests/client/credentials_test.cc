// Tokens that a client shows, and when it refuses to show one.
#include <stdlib.h>
#include <sys/socket.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gemmd/client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/identity/callers.h"
#include "server/net/listen_socket.h"
#include "server/server.h"
#include "tests/identity/certificates.h"

namespace gemmd::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

std::string TempPath(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/credentials_test.",
                      testing::UnitTest::GetInstance()->current_test_info()->name(), ".", name);
}

std::string Refused(ClientOptions options) {
  options.connect_timeout = absl::Seconds(20);
  const auto client = Client::Connect(std::move(options));
  EXPECT_EQ(client.status().code(), absl::StatusCode::kInvalidArgument) << client.status();
  return std::string(client.status().message());
}

TEST(CredentialsTest, ATokenGoesToOtherMachinesOverTlsAlone) {
  EXPECT_THAT(Refused({.address = "192.0.2.1:1", .token = "s3cret"}),
              AllOf(HasSubstr("without TLS"), HasSubstr("192.0.2.1:1"), Not(HasSubstr("s3cret"))));
  for (const char* there : {"localhost.example:1", "127.example:1", "dns:///192.0.2.1:1"}) {
    EXPECT_THAT(Refused({.address = there, .token = "s3cret"}), HasSubstr("without TLS")) << there;
  }
}

TEST(CredentialsTest, WrongTokensAreRefusedAndNotQuoted) {
  EXPECT_THAT(Refused({.token = "s3c ret"}), AllOf(HasSubstr("7 bytes"), Not(HasSubstr("s3c"))));
  EXPECT_THAT(Refused({.token = std::string(1025, 'x')}), HasSubstr("1025 bytes"));
  EXPECT_THAT(Refused({.token = "x", .token_file = "y"}), HasSubstr("at most one"));
  EXPECT_THAT(Refused({.token_file = TempPath("missing")}),
              AllOf(HasSubstr("token_file"), HasSubstr("No such file")));
  EXPECT_THAT(Refused({.token_file = testing::TempDir()}), HasSubstr("Is a directory"));
  std::ofstream(TempPath("empty")).flush();
  EXPECT_THAT(Refused({.token_file = TempPath("empty")}), HasSubstr("which is empty"));
  EXPECT_THAT(Refused({.token_file = "/dev/zero"}), HasSubstr("more than 1048576 bytes"));
  std::ofstream(TempPath("blank")) << "\n";
  EXPECT_THAT(Refused({.token_file = TempPath("blank")}), HasSubstr("0 bytes"));
  EXPECT_THAT(Refused({.token = "\n"}), HasSubstr("0 bytes"));
  std::ofstream(TempPath("marked")) << "\xEF\xBB\xBFtoken";
  EXPECT_THAT(Refused({.token_file = TempPath("marked")}),
              AllOf(HasSubstr(TempPath("marked")), HasSubstr("byte order mark")));
  // The end of a line does not count, wherever it comes from.
  EXPECT_THAT(Refused({.address = "192.0.2.1:1", .token = "s3cret\n"}), HasSubstr("without TLS"));
}

// For the time of a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    const char* const before = std::getenv(name);
    if (before != nullptr) before_ = before;
    if (value.empty()) {
      unsetenv(name);
    } else {
      setenv(name, value.c_str(), /*overwrite=*/1);
    }
  }
  ~Variable() {
    if (before_.empty()) {
      unsetenv(name_);
    } else {
      setenv(name_, before_.c_str(), /*overwrite=*/1);
    }
  }

 private:
  const char* const name_;
  std::string before_;
};

TEST(CredentialsTest, WithoutTlsNothingGoesThroughAProxy) {
  ServerOptions options;
  options.address = "127.0.0.1:0";
  options.metrics_address = "";
  options.engine.devices = "host";
  options.engine.device_memory_bytes = 256 * gemmd::kMiB;
  const auto server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  // Takes connections and answers nothing.
  const auto proxy = Listen("proxy", {.host = "127.0.0.1"});
  ASSERT_TRUE(proxy.ok()) << proxy.status();
  const Variable unset[] = {
      {"grpc_proxy", ""}, {"https_proxy", ""}, {"no_grpc_proxy", ""}, {"no_proxy", ""}};
  const Variable set("http_proxy", absl::StrCat("http://", proxy->text()));
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const auto client = Client::Connect({.address = absl::StrCat(host, ":", (*server)->port()),
                                         .channels = 2,
                                         .connect_timeout = absl::Seconds(30),
                                         .token = "s3cret"});
    EXPECT_TRUE(client.ok()) << host << ": " << client.status();
    EXPECT_EQ(accept(proxy->fds.at(0).get(), nullptr, nullptr), -1) << host << ": the proxy saw it";
  }
}

// A server with TLS and a caller.
class CredentialsServerTest : public testing::Test {
 protected:
  void SetUp() override {
    const KeyedCertificate issued = ca_.Issue({.common_name = "gemmd", .dns_name = "localhost"});
    ServerOptions options;
    options.address = "127.0.0.1:0";
    options.metrics_address = "";
    options.engine.devices = "host";
    options.engine.device_memory_bytes = 256 * gemmd::kMiB;
    options.engine.max_queue_wait = absl::Hours(1);  // no test depends on speed
    options.identity.tls = {.certificate = TempPath("crt"), .key = TempPath("key")};
    options.identity.callers_file = TempPath("callers");
    WriteFileAtOnce(TempPath("ca"), ca_.certificate());
    WriteFileAtOnce(TempPath("crt"), issued.certificate);
    WriteFileAtOnce(TempPath("key"), issued.key);
    WriteFileAtOnce(TempPath("callers"), Line("alice", "call,matrices") + Line("carol", "call") +
                                             Line("dave", "matrices"));
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // The token is the name.
  static std::string Line(const std::string& name, const std::string& roles) {
    std::string hex;
    for (const uint8_t byte : HashToken(name)) {
      absl::StrAppend(&hex, absl::Hex(byte, absl::kZeroPad2));
    }
    return absl::StrCat(name, " ", roles, " sha256:", hex, "\n");
  }

  std::unique_ptr<Client> Connect(const std::string& token) {
    WriteFileAtOnce(TempPath("token"), token + "\n");
    auto client = Client::Connect({.address = absl::StrCat("localhost:", server_->port()),
                                   .channels = 2,
                                   .stripe_threshold_bytes = gemmd::kMiB,
                                   .tls = TlsOptions{.root_certificates_file = TempPath("ca")},
                                   .token_file = TempPath("token")});
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  // Large enough that a client splits it.
  static absl::StatusOr<ProductResult> MultiplyLarge(Client& client) {
    const Shape shape = {.rows = 640, .cols = 640, .dtype = kF32};
    const auto a = HostMatrix::Allocate(shape);
    const auto b = HostMatrix::Allocate(shape);
    return client.Multiply({.a = a->view(), .b = b->view()});
  }

  const TestCa ca_;
  std::unique_ptr<Server> server_;
};

TEST_F(CredentialsServerTest, EveryKindOfCallShowsTheToken) {
  const auto alice = Connect("alice");
  EXPECT_EQ(alice->server().caller().name(), "alice");
  const auto product = MultiplyLarge(*alice);
  EXPECT_TRUE(product.ok()) << product.status();
  EXPECT_THAT(*alice->ListMatrices(), SizeIs(0));
  const Generated noise = {.shape = {.rows = 8, .cols = 8, .dtype = kF32}};
  ASSERT_TRUE(alice->PutGenerated(noise, {.keep = {.name = "w"}}).ok());
  EXPECT_TRUE(alice->StatMatrix(Resident::ByName("w")).ok());
  EXPECT_TRUE(alice->Multiply({.a = Resident::ByName("w"), .b = noise}).ok()) << "in one message";
  EXPECT_TRUE(alice->DeleteMatrix(Resident::ByName("w")).ok());
}

TEST_F(CredentialsServerTest, ACallerNeedsNoRoleButThatOfItsCalls) {
  const auto dave = Connect("dave");
  ASSERT_NE(dave, nullptr);
  EXPECT_THAT(*dave->ListMatrices(), SizeIs(0));
  EXPECT_TRUE(absl::IsPermissionDenied(MultiplyLarge(*dave).status()));
}

TEST_F(CredentialsServerTest, AClientWithoutTlsIsToldWhatMayBeMissing) {
  const auto client =
      Client::Connect({.address = server_->address(), .connect_timeout = absl::Seconds(20)});
  EXPECT_THAT(std::string(client.status().message()), HasSubstr("a server does so that wants TLS"));
}

TEST_F(CredentialsServerTest, AnErrorNamesTheProxy) {
  const Variable unset[] = {
      {"grpc_proxy", ""}, {"no_grpc_proxy", ""}, {"no_proxy", ""}, {"NO_PROXY", ""}};
  // Where nobody listens.
  const Variable set("https_proxy", "http://user:s3cret@127.0.0.1:1");
  const ClientOptions options = {.address = absl::StrCat("localhost:", server_->port()),
                                 .connect_timeout = absl::Seconds(20),
                                 .tls = TlsOptions{.root_certificates_file = TempPath("ca")}};
  const auto client = Client::Connect(options);
  EXPECT_EQ(client.status().code(), absl::StatusCode::kUnavailable) << client.status();
  EXPECT_THAT(std::string(client.status().message()),
              AllOf(HasSubstr("through the proxy 127.0.0.1:1 (https_proxy)"),
                    HasSubstr("is this the proxy's address?"), Not(HasSubstr("does gemmd run")),
                    Not(HasSubstr("s3cret"))));
  for (const auto& [name, value] :
       {std::pair("NO_PROXY", "localhost"), std::pair("no_proxy", "example, *")}) {
    const Variable excepted(name, value);
    EXPECT_TRUE(absl::IsUnauthenticated(Client::Connect(options).status())) << name;
  }
}

TEST_F(CredentialsServerTest, WithoutTheRoleMatricesProductsAreNotSplit) {
  const auto carol = Connect("carol");
  const auto product = MultiplyLarge(*carol);
  EXPECT_TRUE(product.ok()) << product.status();
}

TEST_F(CredentialsServerTest, SharedMatricesAreListedAndUsedByName) {
  const auto alice = Connect("alice");
  const Generated noise = {.shape = {.rows = 8, .cols = 8, .dtype = kF32}};
  ASSERT_TRUE(alice->PutGenerated(noise, {.keep = {.name = "w", .shared = true}}).ok());
  EXPECT_THAT(*alice->ListMatrices(), SizeIs(0));
  EXPECT_THAT(*alice->ListMatrices(ListOptions{.shared = true}), SizeIs(1));
  EXPECT_TRUE(alice->Multiply({.a = Resident::BySharedName("w"), .b = noise}).ok());
  EXPECT_FALSE(alice->DeleteMatrix(Resident::ByName("w")).ok());
  EXPECT_TRUE(alice->DeleteMatrix(Resident::BySharedName("w")).ok());
}

}  // namespace
}  // namespace gemmd::client
