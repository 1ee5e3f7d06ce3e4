// Every command prints why the server refused it, and exits with 1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gemm/v1/gemm.grpc.pb.h"
#include "tests/ctl/served_gemmctl.h"

namespace gemmd::ctl {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Says who it is, and knows no other call.
class UnwillingServer : public gemm::v1::GemmService::Service {
 public:
  grpc::Status GetServerInfo(grpc::ServerContext*, const gemm::v1::GetServerInfoRequest*,
                             gemm::v1::GetServerInfoResponse* response) override {
    if (infos_left == 0) return {grpc::StatusCode::PERMISSION_DENIED, "not you"};
    --infos_left;
    response->set_version("0");
    return grpc::Status::OK;
  }

  int infos_left = 1;
};

using RefusedCommandsTest = ServedGemmctl<UnwillingServer>;

const std::vector<std::vector<const char*>>& Commands() {
  static const auto* const kCommands = new std::vector<std::vector<const char*>>{
      {"multiply", "random:2x2:f32:1", "random:2x2:f32:2"},
      {"multiply", "@a", "random:2x2:f32"},
      {"multiply", "random:2x2:f32", "@b"},
      {"matrix", "put", "random:2x2:f32"},
      {"matrix", "get", "@a", "-o", "/dev/null"},
      {"matrix", "list"},
      {"matrix", "rm", "@a"},
      {"kernels"},
      {"explain", "-m", "1", "-n", "1", "-k", "1"},
      {"bench", "--shape", "8", "--quiet"},
      {"tune", "--shapes", "8", "--quiet", "-o", "/dev/null"},
      {"loadtest", "--requests", "1", "--warmup", "0", "--shape", "8x8x8"},
      {"loadtest", "--requests", "1", "--warmup", "0", "--shape", "8x8x8", "--source", "resident"},
  };
  return *kCommands;
}

std::string Joined(const std::vector<const char*>& words) {
  std::string joined;
  for (const char* word : words) joined += std::string(word) + " ";
  return joined;
}

TEST_F(RefusedCommandsTest, ByTheServer) {
  for (const std::vector<const char*>& words : Commands()) {
    service_.infos_left = 2;  // a load test connects twice
    EXPECT_EQ(Gemmctl(words), kExitFailed) << Joined(words);
    EXPECT_THAT(err_.str(), StartsWith("gemmctl: UNIMPLEMENTED: ")) << Joined(words);
    EXPECT_EQ(out_.str(), "") << Joined(words);
  }
}

TEST_F(RefusedCommandsTest, AtOnce) {
  service_.infos_left = 0;
  for (const std::vector<const char*>& words : Commands()) {
    EXPECT_EQ(Gemmctl(words), kExitFailed) << Joined(words);
    EXPECT_THAT(err_.str(), StartsWith("gemmctl: PERMISSION_DENIED: not you")) << Joined(words);
  }
  EXPECT_EQ(Gemmctl({"info"}), kExitFailed);
  EXPECT_EQ(Gemmctl({"version"}), kExitOk) << "its own it knows";
  EXPECT_THAT(out_.str(), HasSubstr("none answers at " + address_));
}

TEST_F(RefusedCommandsTest, InfoAsksOnceMoreThanTheConnectionDoes) {
  EXPECT_EQ(Gemmctl({"info"}), kExitFailed);
  EXPECT_THAT(err_.str(), StartsWith("gemmctl: PERMISSION_DENIED: not you"));
}

}  // namespace
}  // namespace gemmd::ctl
