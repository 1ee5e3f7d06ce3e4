// The program itself: what it exits with, and what it says.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/flags.h"
#include "tests/rpc/host_matrix.h"
#include "tests/rpc/stream_client.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The server's program, with its output in one pipe.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      close(ends[0]);
      close(ends[1]);
      arguments.insert(arguments.begin(), GEMMD_BINARY);
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
  }
  ~Process() {
    if (!waited_) {
      kill(pid_, SIGKILL);
      Wait();
    }
    close(output_);
  }

  // One line of output; empty at its end.
  std::string ReadLine() {
    std::string line;
    char c;
    while (read(output_, &c, 1) == 1 && c != '\n') line += c;
    return line;
  }
  std::string ReadAll() {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(output_, buffer, sizeof(buffer))) > 0;) text.append(buffer, got);
    return text;
  }
  void Signal(int number) { kill(pid_, number); }
  // The wait status.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    waited_ = true;
    return status;
  }
  // The exit code; -1 where a signal ended it.
  int ExitCode() {
    const int status = Wait();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
  int output_;
  bool waited_ = false;
};

const std::vector<std::string> kServe = {"--devices=host",        "--device-memory-bytes=64MiB",
                                         "--staging-bytes=4MiB",  "--staging-block-bytes=128KiB",
                                         "--address=127.0.0.1:0", "--metrics-address=127.0.0.1:0",
                                         "--log-format=json"};

// The address in the line that says so.
std::string AwaitServing(Process& process) {
  for (;;) {
    const std::string text = process.ReadLine();
    if (text.empty()) return "";
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (line.is_object() && line["msg"] == "serving") return line["address"];
  }
}

TEST(Process, StopsOnEitherSignal) {
  for (const int number : {SIGTERM, SIGINT}) {
    Process process(kServe);
    ASSERT_NE(AwaitServing(process), "");
    process.Signal(number);
    EXPECT_EQ(process.ExitCode(), kExitOk);
    EXPECT_THAT(process.ReadAll(), AllOf(HasSubstr("draining"), HasSubstr("stopped")));
  }
}

TEST(Process, FinishesRunningJobsBeforeItStops) {
  Process process(kServe);
  const std::string address = AwaitServing(process);
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
  std::vector<std::string> arguments = kServe;
  arguments.push_back("--drain-timeout=100ms");
  Process process(arguments);
  auto stub = v1::GemmService::NewStub(
      grpc::CreateChannel(AwaitServing(process), grpc::InsecureChannelCredentials()));
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
  Process process(kServe);
  auto stub = v1::GemmService::NewStub(
      grpc::CreateChannel(AwaitServing(process), grpc::InsecureChannelCredentials()));
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

TEST(Process, WrongFlagsExitWithTwoAndSayWhy) {
  struct Wrong {
    std::vector<std::string> arguments;
    std::string sentence;
  };
  const Wrong table[] = {
      {{"--max-jobs=none"}, "--max-jobs: 'none'; allowed: a whole number"},
      {{"--device=host"}, "did you mean --devices?"},
      {{"--devices=tpu"}, "tpu"},
      {{"--devices=host:0"}, "host:0"},
      {{"--devices=host", "--metrics-address=nonsense"}, "--metrics-address"},
  };
  for (const Wrong& wrong : table) {
    Process process(wrong.arguments);
    EXPECT_THAT(process.ReadAll(), HasSubstr(wrong.sentence));
    EXPECT_EQ(process.ExitCode(), kExitUsage) << wrong.sentence;
  }
}

TEST(Process, APortThatIsTakenExitsWithOne) {
  Process first(kServe);
  std::vector<std::string> arguments = kServe;
  arguments.push_back("--address=" + AwaitServing(first));
  Process second(arguments);
  EXPECT_THAT(second.ReadAll(), HasSubstr("--address: cannot listen on"));
  EXPECT_EQ(second.ExitCode(), kExitFailure);
}

TEST(Process, HelpAndVersion) {
  Process help({"--help"});
  EXPECT_THAT(help.ReadAll(), HasSubstr("--drain-timeout"));
  EXPECT_EQ(help.ExitCode(), kExitOk);
  Process version({"--version"});
  EXPECT_THAT(version.ReadAll(), HasSubstr("gemmd 0.1.0"));
  EXPECT_EQ(version.ExitCode(), kExitOk);
}

}  // namespace
}  // namespace gemmd
