// The program and its callers: reloads by themselves and at SIGHUP, and no secret in the log.
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/flags/flags.h"
#include "server/identity/callers.h"
#include "tests/identity/certificates.h"
#include "tests/rpc/gemmd_process.h"
#include "tests/rpc/raw_client.h"

namespace gemmd {
namespace {

using grpc::StatusCode;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kInfo[] = "/gemm.v1.GemmService/GetServerInfo";

std::string LineOf(const std::string& token) {
  std::string hex;
  for (const uint8_t byte : HashToken(token))
    absl::StrAppend(&hex, absl::Hex(byte, absl::kZeroPad2));
  return absl::StrCat("alice call sha256:", hex, "\n");
}

std::string CallersFile(const std::string& content) {
  std::string path = absl::StrCat(testing::TempDir(), "/identity_process_test.",
                                  testing::UnitTest::GetInstance()->current_test_info()->name());
  WriteFileAtOnce(path, content);
  return path;
}

StatusCode InfoWith(const std::shared_ptr<grpc::Channel>& channel, const std::string& token) {
  RawCall call(channel, kInfo, token);
  call.Write("");
  call.WritesDone();
  return call.Finish().error_code();
}

// Reads the log up to a line with this text; false at its end. Adds the lines that it reads to
// `log`.
bool AwaitLine(GemmdProcess& process, const std::string& text, std::string* log = nullptr) {
  for (;;) {
    const std::string line = process.ReadLine();
    if (line.empty()) return false;
    if (log != nullptr) absl::StrAppend(log, line, "\n");
    if (absl::StrContains(line, text)) return true;
  }
}

TEST(IdentityProcess, TakesAChangedCallersFileByItselfAndAtSighup) {
  const std::string file = CallersFile(LineOf("first"));
  std::vector<std::string> flags = HostServerFlags();
  flags.push_back("--callers-file=" + file);
  GemmdProcess process(flags);
  const auto channel =
      grpc::CreateChannel(process.AwaitServing().address, grpc::InsecureChannelCredentials());
  EXPECT_EQ(InfoWith(channel, "first"), StatusCode::OK);

  WriteFileAtOnce(file, LineOf("second"));
  ASSERT_TRUE(AwaitLine(process, "callers file read again"));
  EXPECT_EQ(InfoWith(channel, "first"), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(InfoWith(channel, "second"), StatusCode::OK);

  process.Signal(SIGHUP);
  ASSERT_TRUE(AwaitLine(process, "callers file read again")) << "unchanged, and read all the same";
  EXPECT_EQ(InfoWith(channel, "second"), StatusCode::OK);
  process.Signal(SIGTERM);
  EXPECT_EQ(process.ExitCode(), kExitOk);
}

TEST(IdentityProcess, WarnsOfQuotasOfNobody) {
  const std::string callers = CallersFile(LineOf("token"));
  const std::string quotas = callers + ".quotas";
  WriteFileAtOnce(quotas, "alice jobs=1\nalcie jobs=1\nrole:admin weight=2\n* jobs=2\n");
  std::vector<std::string> flags = HostServerFlags();
  flags.push_back("--callers-file=" + callers);
  flags.push_back("--quotas-file=" + quotas);
  GemmdProcess process(flags);
  std::string log;
  ASSERT_TRUE(AwaitLine(process, "serving", &log));
  constexpr char kWarning[] = "quotas of callers whom the callers file does not name";
  EXPECT_THAT(log, HasSubstr(absl::StrCat(kWarning, R"(","count":1,"callers":"alcie")")));

  WriteFileAtOnce(quotas, "alice jobs=1\nbob jobs=1\n");
  ASSERT_TRUE(AwaitLine(process, "quotas file read again", &log));
  process.Signal(SIGTERM);
  log += process.ReadAll();
  EXPECT_THAT(log, HasSubstr(absl::StrCat(kWarning, R"(","count":1,"callers":"bob")")));
}

TEST(IdentityProcess, LogsNoSecret) {
  const std::string file = CallersFile(LineOf("the-right-secret"));
  std::vector<std::string> flags = HostServerFlags();
  flags.insert(flags.end(), {"--callers-file=" + file, "--log-level=debug"});
  GemmdProcess process(flags);
  const auto channel =
      grpc::CreateChannel(process.AwaitServing().address, grpc::InsecureChannelCredentials());
  EXPECT_EQ(InfoWith(channel, "the-right-secret"), StatusCode::OK);
  EXPECT_EQ(InfoWith(channel, "a-wrong-secret"), StatusCode::UNAUTHENTICATED);
  WriteFileAtOnce(file, "alice call sha256:a-secret-in-the-wrong-place\n");
  process.Signal(SIGHUP);
  std::string log;
  ASSERT_TRUE(AwaitLine(process, "files not taken", &log));
  EXPECT_EQ(InfoWith(channel, "the-right-secret"), StatusCode::OK) << "the old file holds";
  process.Signal(SIGTERM);
  EXPECT_EQ(process.ExitCode(), kExitOk);
  log += process.ReadAll();
  EXPECT_THAT(log, AllOf(HasSubstr("refused a call"), HasSubstr("\"caller\":\"alice\"")));
  EXPECT_THAT(log, Not(HasSubstr("secret")));
}

TEST(IdentityProcess, DoesNotListenWideByMistake) {
  GemmdProcess process({"--devices=host", "--address=0.0.0.0:0", "--metrics-address="});
  EXPECT_EQ(process.ExitCode(), kExitUsage);
  EXPECT_THAT(process.ReadAll(),
              AllOf(HasSubstr("without TLS"), HasSubstr("--insecure=plaintext")));
}

TEST(IdentityProcess, WarnsWhereItListensWideAsTold) {
  std::vector<std::string> flags = HostServerFlags();
  flags.insert(flags.end(), {"--address=0.0.0.0:0", "--insecure=all"});
  GemmdProcess process(flags);
  EXPECT_TRUE(AwaitLine(process, "open to the network"));
  EXPECT_NE(process.AwaitServing().address, "");
}

}  // namespace
}  // namespace gemmd
