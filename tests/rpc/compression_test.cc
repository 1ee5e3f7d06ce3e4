// Compressed messages are refused before anything is inflated.
#include <fstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/engine/bounds/options.h"
#include "server/rpc/context/method.h"
#include "tests/rpc/gemmd_process.h"
#include "tests/rpc/raw_client.h"
#include "tests/sanitized.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

// The most memory that a refused call may cost. Inflated, one of them has 512 MiB. The first call's
// own is most of it.
constexpr int64_t kRefusal = (kSanitized ? 128 : 8) * kMiB;

// The most memory that the process has had, in bytes.
int64_t PeakMemory(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    absl::string_view text = line;
    int64_t kibibytes = 0;
    if (!absl::ConsumePrefix(&text, "VmHWM:") || !absl::ConsumeSuffix(&text, "kB")) continue;
    if (absl::SimpleAtoi(text, &kibibytes)) return kibibytes * 1024;
  }
  ADD_FAILURE() << "no VmHWM";
  return 0;
}

std::shared_ptr<grpc::Channel> Compressing(const std::string& address,
                                           grpc_compression_algorithm algorithm) {
  grpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(algorithm);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

TEST(Compression, BombsAreRefusedAndNotInflated) {
  GemmdProcess process(HostServerFlags());
  const std::string address = process.AwaitServing().address;
  const std::string zeros(512 * kMiB, '\0');
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    for (const std::string& method : MethodNames()) {
      const int64_t before = PeakMemory(process.pid());
      // One of them with all of it; gRPC takes its time over compressing it.
      const bool whole = algorithm == GRPC_COMPRESS_GZIP && method == "Multiply";
      RawCall call(Compressing(address, algorithm), "/gemm.v1.GemmService/" + method);
      call.Write(whole ? zeros : zeros.substr(0, 12 * kMiB));
      call.WritesDone();
      const grpc::Status status = call.Finish();
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method;
      EXPECT_THAT(status.error_message(), HasSubstr("is disabled")) << method;
      EXPECT_LT(PeakMemory(process.pid()) - before, kRefusal) << method;
    }
  }
}

TEST(Compression, MessagesThatAreNotCompressedAreTaken) {
  GemmdProcess process(HostServerFlags());
  std::string response;
  const grpc::Status status =
      CallUnary(Compressing(process.AwaitServing().address, GRPC_COMPRESS_NONE),
                "/gemm.v1.GemmService/GetServerInfo", "", response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

}  // namespace
}  // namespace gemmd
