// Which server gemmctl calls, and that no other one is shown its credentials.
#include "client/ctl/servers/server_choice.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/temporary_folder.h"

namespace gemmd::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLabAndProd[] = R"(current-context = "prod"

[lab]
address = "lab.example:1"
ca = "/lab/ca"
token-file = "/lab/token"

[prod]
address = "prod.example:1"
ca = "/prod/ca"
cert = "/prod/cert"
key = "/prod/key"
server-name = "prod"
token-file = "/prod/token"
token-without-tls = true
)";

class ServerChoiceTest : public testing::Test {
 protected:
  ServerChoiceTest() { variables_["GEMMCTL_CONFIG"] = folder_.Write("config", kLabAndProd); }

  absl::Status Choose(bool address_given = false) {
    return ChooseServer(
        address_given, [this](const char* name) { return variables_[name]; }, global_);
  }

  void ExpectLab() {
    EXPECT_EQ(global_.address, "lab.example:1");
    EXPECT_EQ(global_.server.ca, "/lab/ca");
    EXPECT_EQ(global_.server.token_file, "/lab/token");
    ExpectNothingOfProd();
  }

  void ExpectNothingOfProd() {
    for (const std::string& text :
         {global_.address, global_.server.ca, global_.server.cert, global_.server.key,
          global_.server.server_name, global_.server.token_file, global_.server.token}) {
      EXPECT_THAT(text, Not(HasSubstr("prod")));
    }
    EXPECT_FALSE(global_.server.token_without_tls);
  }

  const TemporaryFolder folder_;
  std::map<std::string, std::string> variables_;
  GlobalOptions global_;
};

TEST_F(ServerChoiceTest, WithoutAnythingElseItIsTheCurrentContext) {
  ASSERT_TRUE(Choose().ok());
  EXPECT_EQ(global_.address, "prod.example:1");
  EXPECT_EQ(global_.server.key, "/prod/key");
  EXPECT_TRUE(global_.server.token_without_tls);
}

TEST_F(ServerChoiceTest, AContextOnTheCommandLineOutranksEveryVariable) {
  variables_.insert({{"GEMMCTL_CONTEXT", "prod"},
                     {"GEMMCTL_ADDRESS", "prod.example:2"},
                     {"GEMMD_ADDRESS", "0.0.0.0:3"},
                     {"GEMMCTL_CA", "/prod/ca"},
                     {"GEMMCTL_CERT", "/prod/cert"},
                     {"GEMMCTL_KEY", "/prod/key"},
                     {"GEMMCTL_SERVER_NAME", "prod"},
                     {"GEMMCTL_TOKEN_FILE", "/prod/token"},
                     {"GEMMCTL_TOKEN", "prod's"}});
  global_.context = "lab";
  ASSERT_TRUE(Choose().ok());
  ExpectLab();
}

TEST_F(ServerChoiceTest, AnOptionOutranksTheContext) {
  global_.context = "lab";
  global_.server.ca = "/own/ca";
  global_.server.token_file = "/own/token";
  ASSERT_TRUE(Choose().ok());
  EXPECT_EQ(global_.address, "lab.example:1");
  EXPECT_EQ(global_.server.ca, "/own/ca");
  EXPECT_EQ(global_.server.token_file, "/own/token");
}

TEST_F(ServerChoiceTest, AContextOfTheEnvironmentOutranksAnAddressOfTheEnvironment) {
  variables_.insert({{"GEMMCTL_CONTEXT", "lab"}, {"GEMMCTL_ADDRESS", "prod.example:2"}});
  ASSERT_TRUE(Choose().ok());
  ExpectLab();
}

TEST_F(ServerChoiceTest, AnotherAddressIsShownNothingOfAContext) {
  variables_["GEMMCTL_CONTEXT"] = "prod";
  global_.address = "other.example:1";
  ASSERT_TRUE(Choose(/*address_given=*/true).ok());
  EXPECT_EQ(global_.address, "other.example:1");
  ExpectNothingOfProd();
}

TEST_F(ServerChoiceTest, AnAddressOfTheEnvironmentIsShownNothingOfTheCurrentContext) {
  for (const char* variable : {"GEMMCTL_ADDRESS", "GEMMD_ADDRESS"}) {
    variables_[variable] = "other.example:1";
    global_ = {.address = "other.example:1"};
    ASSERT_TRUE(Choose().ok());
    EXPECT_EQ(global_.address, "other.example:1");
    ExpectNothingOfProd();
    variables_.erase(variable);
  }
}

TEST_F(ServerChoiceTest, TheTokenOfTheEnvironmentCountsBeforeTheFileOfTheConfiguration) {
  variables_["GEMMCTL_TOKEN"] = "own";
  ASSERT_TRUE(Choose().ok());
  EXPECT_EQ(global_.server.token, "own");
  EXPECT_EQ(global_.server.token_file, "");
}

TEST_F(ServerChoiceTest, WhatNamesTwoServersOrNoneIsRefused) {
  global_ = {.address = "other.example:1", .context = "lab"};
  EXPECT_THAT(Choose(/*address_given=*/true).message(), HasSubstr("--address and --context"));
  global_ = {.context = "moon"};
  EXPECT_THAT(Choose().message(), HasSubstr("no context [moon]"));
  global_ = {};
  variables_["GEMMCTL_CONTEXT"] = "moon";
  EXPECT_THAT(Choose().message(),
              AllOf(HasSubstr("GEMMCTL_CONTEXT: "), HasSubstr("no context [moon]")));
  variables_.clear();
  global_ = {.context = "lab"};
  EXPECT_THAT(Choose().message(), AllOf(HasSubstr("'lab'"), HasSubstr("GEMMCTL_CONFIG")));
}

// As the user has set it: the client library has other names.
TEST_F(ServerChoiceTest, AnErrorNamesASettingAsItWasSet) {
  variables_["GEMMCTL_KEY"] = "/own/key";
  global_.server.ca = "/own/ca";
  ASSERT_TRUE(Choose().ok());
  const auto told = [this](const std::string& message) {
    const absl::Status status = InNamesOfUser(absl::InvalidArgumentError(message), global_.server);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  const std::string prod = variables_["GEMMCTL_CONFIG"] + ": [prod] ";
  EXPECT_EQ(told("tls.root_certificates_file is '/own/ca', no"), "--ca is '/own/ca', no");
  EXPECT_EQ(told("tls.private_key_file is 'x'"), "GEMMCTL_KEY is 'x'");
  EXPECT_EQ(told("tls.certificate_chain_file is 'x'"), prod + "cert is 'x'");
  EXPECT_EQ(told("token_file has a token"), prod + "token-file has a token");
  EXPECT_EQ(told("address is 'x'"), prod + "address is 'x'");
  EXPECT_EQ(told("token: not sent: set tls, or token_without_tls"),
            "token: not sent: set --tls, or --token-without-tls");
  EXPECT_EQ(told("addresses are many"), "addresses are many");
  global_ = {};
  variables_["GEMMCTL_TOKEN"] = "a b";
  ASSERT_TRUE(Choose().ok());
  EXPECT_EQ(told("token has a token"), "GEMMCTL_TOKEN has a token");
}

TEST_F(ServerChoiceTest, AFileThatTheEnvironmentNamesMustBeThere) {
  variables_["GEMMCTL_CONFIG"] = "/nowhere/at/all";
  EXPECT_THAT(Choose().message(), HasSubstr("/nowhere/at/all"));
  variables_["GEMMCTL_CONFIG"] = "/dev/zero";
  EXPECT_THAT(Choose().message(), HasSubstr("/dev/zero: has more than"));
}

TEST_F(ServerChoiceTest, ACertificateNeedsItsKey) {
  variables_.clear();
  global_.server.cert = "/some/cert";
  EXPECT_THAT(Choose().message(), HasSubstr("--cert and --key"));
  global_.server.key = "/some/key";
  EXPECT_TRUE(Choose().ok());
}

TEST_F(ServerChoiceTest, AServerNameNeedsTls) {
  variables_.clear();
  global_.server.server_name = "x";
  EXPECT_THAT(Choose().message(), AllOf(HasSubstr("'x' without TLS"), HasSubstr("--ca")));
  global_.server.tls = true;
  EXPECT_TRUE(Choose().ok());
}

}  // namespace
}  // namespace gemmd::ctl
