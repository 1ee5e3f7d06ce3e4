// The program itself: its exit codes and its output.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/flags/flags.h"
#include "tests/base/temporary_folder.h"
#include "tests/rpc/gemmd_process.h"
#include "tests/rpc/host_matrix.h"
#include "tests/rpc/stream_client.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Process, StopsOnEitherSignal) {
  for (const int number : {SIGTERM, SIGINT}) {
    GemmdProcess process(HostServerFlags());
    ASSERT_NE(process.AwaitServing().address, "");
    process.Signal(number);
    EXPECT_EQ(process.ExitCode(), kExitOk);
    EXPECT_THAT(process.ReadAll(), AllOf(HasSubstr("draining"), HasSubstr("stopped")));
  }
}

TEST(Process, FinishesRunningJobsBeforeItStops) {
  GemmdProcess process(HostServerFlags());
  const std::string address = process.AwaitServing().address;
  auto stub =
      v1::GemmService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  v1::Product product;
  *product.mutable_a() = GeneratedOperand({700, 700, gemm::DType::kF64}, 1);
  *product.mutable_b() = GeneratedOperand({700, 700, gemm::DType::kF64}, 2);
  product.mutable_kernel()->set_name("host_reference");
  StreamClient stream(*stub);
  stream.Header(1, product);
  // Until the server has the job: it takes messages in order.
  stream.Cancel(99);
  EXPECT_EQ(stream.Wait(99).code(), grpc::StatusCode::NOT_FOUND);
  process.Signal(SIGTERM);
  const JobOutcome outcome = stream.Wait(1);
  ASSERT_TRUE(outcome.result.has_value());
  EXPECT_EQ(outcome.data.size(), 700 * 700 * 8u);
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(process.ExitCode(), kExitOk);
}

TEST(Process, CancelsWhatOutlastsTheDrainTimeout) {
  std::vector<std::string> arguments = HostServerFlags();
  arguments.push_back("--drain-timeout=100ms");
  GemmdProcess process(arguments);
  auto stub = v1::GemmService::NewStub(
      grpc::CreateChannel(process.AwaitServing().address, grpc::InsecureChannelCredentials()));
  const HostMatrix matrix = RandomMatrix({64, 64, gemm::DType::kF32}, 1);
  v1::Product product;
  *product.mutable_a() = PayloadOperand(matrix);
  *product.mutable_b() = PayloadOperand(matrix);
  StreamClient stream(*stub);
  stream.Header(1, product);
  stream.Cancel(99);
  EXPECT_EQ(stream.Wait(99).code(), grpc::StatusCode::NOT_FOUND);
  process.Signal(SIGTERM);
  EXPECT_EQ(stream.Wait(1).code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(process.ExitCode(), kExitOk);
}

TEST(Process, ASecondSignalEndsItAtOnce) {
  GemmdProcess process(HostServerFlags());
  auto stub = v1::GemmService::NewStub(
      grpc::CreateChannel(process.AwaitServing().address, grpc::InsecureChannelCredentials()));
  const HostMatrix matrix = RandomMatrix({64, 64, gemm::DType::kF32}, 1);
  v1::Product product;
  *product.mutable_a() = PayloadOperand(matrix);
  *product.mutable_b() = PayloadOperand(matrix);
  StreamClient stream(*stub);
  stream.Header(1, product);
  stream.Cancel(99);
  EXPECT_EQ(stream.Wait(99).code(), grpc::StatusCode::NOT_FOUND);
  process.Signal(SIGTERM);
  ASSERT_THAT(process.ReadLine(), HasSubstr("draining"));
  absl::SleepFor(absl::Milliseconds(50));
  process.Signal(SIGTERM);
  const int status = process.Wait();
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(Process, OutputThatNobodyReadsDoesNotEndIt) {
  GemmdProcess process(HostServerFlags());
  ASSERT_NE(process.AwaitServing().address, "");
  process.CloseOutput();
  process.Signal(SIGTERM);
  EXPECT_EQ(process.ExitCode(), kExitOk);
}

// Each product is a line of some 400 bytes, and a pipe takes 64 KiB.
TEST(Process, ALogThatNobodyReadsStopsNoProduct) {
  std::vector<std::string> arguments = HostServerFlags();
  arguments.push_back("--log-level=debug");
  GemmdProcess process(arguments);
  auto stub = v1::GemmService::NewStub(
      grpc::CreateChannel(process.AwaitServing().address, grpc::InsecureChannelCredentials()));
  v1::MultiplyUnaryRequest request;
  *request.mutable_product()->mutable_a() = GeneratedOperand({4, 4, gemm::DType::kF32}, 1);
  *request.mutable_product()->mutable_b() = GeneratedOperand({4, 4, gemm::DType::kF32}, 2);
  constexpr int kProducts = 1000;
  for (int i = 0; i < kProducts; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    v1::MultiplyUnaryResponse response;
    const grpc::Status status = stub->MultiplyUnary(&context, request, &response);
    ASSERT_TRUE(status.ok()) << i << ": " << status.error_message();
  }
  process.Signal(SIGTERM);
  EXPECT_EQ(process.ExitCode(), kExitOk);
  EXPECT_THAT(process.ReadAll(), Not(HasSubstr("stopped"))) << "there was room for all lines";
}

// No descriptor that the server opens gets their numbers, and with them lines of its log.
TEST(Process, ServesWithClosedOutputs) {
  const TemporaryFolder folder;
  const std::string address = "unix:" + folder.Path("gemmd.sock");
  std::vector<std::string> arguments = HostServerFlags();
  arguments.push_back("--address=" + address);
  GemmdProcess process(arguments, [] {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(fd);
  });
  auto stub =
      v1::GemmService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  for (int i = 0; i < 3; ++i) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    v1::GetServerInfoResponse response;
    const grpc::Status status = stub->GetServerInfo(&context, {}, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    absl::SleepFor(absl::Milliseconds(300));  // the signal's end of a pipe is looked at
  }
  process.Signal(SIGTERM);
  EXPECT_EQ(process.ExitCode(), kExitOk);
}

// Not even its first line can be written, a warning that comes before the server's start.
TEST(Process, ALogAtTheLimitOfItsSizeCostsItsLinesAlone) {
  const TemporaryFolder folder;
  const std::string log = folder.Write("log", "full"), socket = "unix:" + folder.Path("socket");
  std::vector<std::string> arguments = HostServerFlags();
  arguments.push_back("--address=" + socket);
  GemmdProcess process(arguments, [&log] {
    const int file = open(log.c_str(), O_WRONLY | O_APPEND);
    const rlimit limit = {.rlim_cur = 4, .rlim_max = 4};
    setenv("GEMMD_NO_SUCH_FLAG", "1", 1);
    if (dup2(file, STDERR_FILENO) < 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(99);
  });
  const auto channel = grpc::CreateChannel(socket, grpc::InsecureChannelCredentials());
  const auto limit = std::chrono::system_clock::now() + std::chrono::minutes(1);
  EXPECT_TRUE(channel->WaitForConnected(limit)) << "it has ended";
  process.Signal(SIGTERM);
  EXPECT_EQ(process.ExitCode(), kExitOk);
  EXPECT_EQ(folder.Content("log"), "full");
}

// The output, until it serves, of a server with such a store.
std::string StartWithStore(const std::string& bytes) {
  std::vector<std::string> arguments = HostServerFlags();
  arguments.insert(arguments.end(), {"--device-memory-bytes=64MiB", "--store-bytes=" + bytes});
  GemmdProcess process(arguments);
  std::string all;
  for (std::string line = process.ReadLine(); !line.empty(); line = process.ReadLine()) {
    all += line + '\n';
    if (line.find("\"serving\"") != std::string::npos) break;
  }
  process.Signal(SIGTERM);
  EXPECT_EQ(process.ExitCode(), kExitOk);
  return all;
}

TEST(Process, AStoreThatLeavesNoRoomForJobsIsWarnedOf) {
  const auto warns = HasSubstr("--store-bytes is not below a device's memory");
  EXPECT_THAT(StartWithStore("64MiB"), warns);
  EXPECT_THAT(StartWithStore("63MiB"), AllOf(HasSubstr("\"serving\""), Not(warns)));
}

TEST(Process, WrongFlagsExitWithTwoAndSayWhy) {
  struct Wrong {
    std::vector<std::string> arguments;
    std::string sentence;
  };
  const Wrong table[] = {
      {{"--max-jobs=none"}, "--max-jobs: 'none'; allowed: a whole number"},
      {{"--device=host"}, "did you mean --devices?"},
      {{"--address=nope"}, "--address: 'nope'"},
      {{"--address=127.0.0.1:99999"}, "'99999' is no port"},
      {{"--flagfile=/tmp"}, "--flagfile: '/tmp': Is a directory"},
      {{"--devices=tpu"}, "tpu"},
      {{"--devices=host:0"}, "host:0"},
      {{"--devices=host", "--metrics-address=nonsense"}, "--metrics-address"},
  };
  for (const Wrong& wrong : table) {
    GemmdProcess process(wrong.arguments);
    EXPECT_THAT(process.ReadAll(), HasSubstr(wrong.sentence));
    EXPECT_EQ(process.ExitCode(), kExitUsage) << wrong.sentence;
  }
}

TEST(Process, APortThatIsTakenExitsWithOne) {
  GemmdProcess first(HostServerFlags());
  std::vector<std::string> arguments = HostServerFlags();
  arguments.push_back("--address=" + first.AwaitServing().address);
  GemmdProcess second(arguments);
  EXPECT_THAT(second.ReadAll(), HasSubstr("cannot listen: Address already in use"));
  EXPECT_EQ(second.ExitCode(), kExitFailure);
}

TEST(Process, HelpAndVersion) {
  GemmdProcess help({"--help"});
  EXPECT_THAT(help.ReadAll(), HasSubstr("--drain-timeout"));
  EXPECT_EQ(help.ExitCode(), kExitOk);
  GemmdProcess version({"--version"});
  EXPECT_THAT(version.ReadAll(), HasSubstr("gemmd " GEMMD_VERSION));
  EXPECT_EQ(version.ExitCode(), kExitOk);
}

}  // namespace
}  // namespace gemmd
