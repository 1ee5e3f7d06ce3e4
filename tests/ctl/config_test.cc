// The configuration file of gemmctl, and the tokens that it makes.
#include "client/ctl/servers/config.h"

#include <map>
#include <sstream>
#include <string>

#include "client/ctl/app.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/identity/callers.h"
#include "tests/base/temporary_folder.h"

namespace gemmd::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr char kTwoServers[] = R"(# who is where
current-context = "lab"

[lab]
address = "gpu1.example:50051"
ca = "/etc/gemmd/ca.pem"
token-file = "/home/alice/lab token"

[cloud]
address = "cloud.example:443"
tls = true
)";

absl::StatusOr<ServerSettings> ContextOf(const std::string& text, const std::string& name = "") {
  const TemporaryFolder folder;
  return ReadContext(folder.Write("config", text), name);
}

std::string RefusalOf(const std::string& text, const std::string& name = "") {
  return std::string(ContextOf(text, name).status().message());
}

TEST(ConfigTest, TheCurrentContextIsReadUnlessAnotherIsNamed) {
  const auto lab = ContextOf(kTwoServers);
  ASSERT_TRUE(lab.ok()) << lab.status();
  EXPECT_EQ(lab->address, "gpu1.example:50051");
  EXPECT_EQ(lab->ca, "/etc/gemmd/ca.pem");
  EXPECT_EQ(lab->token_file, "/home/alice/lab token");
  EXPECT_FALSE(lab->tls);
  const auto cloud = ContextOf(kTwoServers, "cloud");
  ASSERT_TRUE(cloud.ok()) << cloud.status();
  EXPECT_EQ(cloud->address, "cloud.example:443");
  EXPECT_TRUE(cloud->tls);
  EXPECT_EQ(cloud->token_file, "");
}

TEST(ConfigTest, APathBeginsInTheFolderOfTheFile) {
  const TemporaryFolder folder;
  const std::string path =
      folder.Write("config",
                   "[lab]\naddress = \"x:1\"\nca = \"ca.pem\"\ncert = \"../c\"\nkey = \"/k\"\n"
                   "server-name = \"lab\"\ntoken-file = \"tokens/lab\"\n");
  const auto lab = ReadContext(path, "lab");
  ASSERT_TRUE(lab.ok()) << lab.status();
  const std::string place = path.substr(0, path.rfind('/') + 1);
  EXPECT_EQ(lab->ca, place + "ca.pem");
  EXPECT_EQ(lab->cert, place + "../c");
  EXPECT_EQ(lab->key, "/k");
  EXPECT_EQ(lab->token_file, place + "tokens/lab");
  EXPECT_EQ(lab->server_name, "lab");
  EXPECT_EQ(lab->address, "x:1");
}

TEST(ConfigTest, WithoutACurrentContextNothingIsSet) {
  const auto settings = ContextOf("[lab]\naddress = \"x:1\"\n");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->address, "");
}

TEST(ConfigTest, WrongFilesAreNamed) {
  EXPECT_THAT(RefusalOf(kTwoServers, "moon"), HasSubstr("no context [moon]"));
  EXPECT_THAT(RefusalOf("current-context = \"gone\"\n"), HasSubstr("no context [gone]"));
  EXPECT_THAT(RefusalOf("[lab]\nadress = \"x\"\n", "lab"),
              AllOf(HasSubstr("[lab] adress: unknown key"), HasSubstr("address, ca")));
  EXPECT_THAT(RefusalOf("[lab]\ntls = \"perhaps\"\n", "lab"), HasSubstr("allowed: true, false"));
  EXPECT_THAT(RefusalOf("[lab]\ntls = true\n", "lab"), HasSubstr("[lab]: no address"));
  EXPECT_THAT(RefusalOf("[lab]\naddress = \"x:1\"\n[lab.old]\naddress = \"y:1\"\n", "lab"),
              AllOf(HasSubstr("[lab.old]"), HasSubstr("without dots")));
  EXPECT_THAT(RefusalOf("address = \"x\"\n"), HasSubstr("address: unknown key"));
  EXPECT_THAT(std::string(ReadContext("/no/such/file", "").status().message()),
              AllOf(HasSubstr("/no/such/file"), HasSubstr("No such file")));
}

TEST(ConfigTest, AKeyHasOneValue) {
  EXPECT_THAT(RefusalOf("[lab]\naddress = \"x:1\"\nca = \"/a\"\nca = \"/b\"\n", "lab"),
              HasSubstr("[lab] ca: 2 values; allowed: one"));
}

TEST(ConfigTest, WhatIsWrongIsShownWithoutItsControlCharacters) {
  const std::string refusal = RefusalOf("\033[31mca = \"/a\"\n");
  EXPECT_NE(refusal, "");
  EXPECT_EQ(refusal.find('\033'), std::string::npos) << refusal;
}

TEST(ConfigTest, IsWhereTheEnvironmentSays) {
  std::map<std::string, std::string> variables;
  const auto path = [&] { return ConfigPath([&](const char* name) { return variables[name]; }); };
  EXPECT_EQ(path(), "");
  variables["HOME"] = "/home/a";
  EXPECT_EQ(path(), "/home/a/.config/gemmctl/config.toml");
  variables["XDG_CONFIG_HOME"] = "/xdg";
  EXPECT_EQ(path(), "/xdg/gemmctl/config.toml");
  variables["GEMMCTL_CONFIG"] = "/own";
  EXPECT_EQ(path(), "/own");
}

struct MadeToken {
  std::string token;
  std::string line;
};

MadeToken Make(const char* name, const char* roles) {
  std::ostringstream out;
  std::ostringstream err;
  const char* const words[] = {"gemmctl", "token", name, "--roles", roles, "--json"};
  EXPECT_EQ(RunGemmctl(6, words, {.out = out, .err = err}), kExitOk) << err.str();
  const auto json = nlohmann::json::parse(out.str());
  return {json.at("token"), json.at("line")};
}

TEST(TokenTest, TheServerKnowsItByItsLine) {
  const MadeToken made = Make("alice", "call,benchmark");
  EXPECT_THAT(made.token, MatchesRegex("gemmd_[A-Za-z0-9_-]+"));
  EXPECT_GE(made.token.size(), 49) << "256 bits";
  EXPECT_THAT(made.line, Not(HasSubstr(made.token)));
  const auto callers = gemmd::Callers::Parse(made.line + "\n");
  ASSERT_TRUE(callers.ok()) << callers.status();
  const gemmd::CallerPtr alice = callers->FindToken(made.token);
  ASSERT_NE(alice, nullptr);
  EXPECT_EQ(alice->name, "alice");
  EXPECT_NE(Make("alice", "call").token, made.token);
}

TEST(TokenTest, WhatGoesToStandardErrorIsACallersFile) {
  std::ostringstream out;
  std::ostringstream err;
  const char* const words[] = {"gemmctl", "token", "bob"};
  ASSERT_EQ(RunGemmctl(3, words, {.out = out, .err = err}), kExitOk);
  const auto callers = gemmd::Callers::Parse(err.str());
  ASSERT_TRUE(callers.ok()) << callers.status();
  const std::string token = out.str().substr(0, out.str().size() - 1);
  EXPECT_NE(callers->FindToken(token), nullptr);
}

TEST(TokenTest, AWrongNameIsAWrongCommandLine) {
  std::ostringstream out;
  std::ostringstream err;
  const char* const words[] = {"gemmctl", "token", "bob builder"};
  EXPECT_EQ(RunGemmctl(3, words, {.out = out, .err = err}), kExitUsage);
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace gemmd::ctl
