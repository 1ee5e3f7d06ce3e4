// The program where the system allows it few threads: it serves, or says why it does not start.
#include "server/process/thread_limits.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/flags/flags.h"
#include "tests/rpc/gemmd_process.h"
#include "tests/rpc/host_matrix.h"
#include "tests/rpc/stream_client.h"

namespace gemmd {
namespace {

namespace v1 = gemm::v1;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(ThreadLimits, ThreadsThatAreTriedAreGoneAgain) {
  // With the first thread a sanitizer starts one of its own.
  EXPECT_TRUE(CheckThreads(1, "a test").ok());
  const std::string before = DescribeThreads();
  EXPECT_TRUE(CheckThreads(100, "a test").ok());
  EXPECT_EQ(DescribeThreads(), before);
}

// The limit is of a user; root has none. No process but this one is of that user.
std::function<void()> WithThreads(rlim_t limit) {
  return [limit, user = static_cast<uid_t>(1'000'000 + getpid())] {
    const rlimit threads = {.rlim_cur = limit, .rlim_max = limit};
    if (setrlimit(RLIMIT_NPROC, &threads) != 0 || setuid(user) != 0) _exit(126);
  };
}

void ExpectServes(const std::string& address) {
  auto stub =
      v1::GemmService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  v1::Product product;
  *product.mutable_a() = GeneratedOperand({64, 64, gemm::DType::kF32}, 1);
  *product.mutable_b() = GeneratedOperand({64, 64, gemm::DType::kF32}, 2);
  StreamClient stream(*stub, absl::Minutes(2));
  for (uint64_t job = 1; job <= 20; ++job) stream.Header(job, product);
  stream.HalfClose();
  for (uint64_t job = 1; job <= 20; ++job) EXPECT_TRUE(stream.Wait(job).result.has_value()) << job;
  EXPECT_TRUE(stream.Finish().ok());
}

TEST(ThreadLimits, TheServerServesOrSaysThatThereAreTooFew) {
  if (getuid() != 0) GTEST_SKIP() << "only root can give a process a user of its own";
  const int step = std::max(1, ThreadsOfGrpc() / 16);
  // Besides them there are threads of libraries, which start before the program does.
  int limit = 2 + static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  int refused = 0;
  for (int served = 0; served < 3; limit += step) {
    SCOPED_TRACE(absl::StrCat("of ", limit, " threads"));
    ASSERT_LT(limit, 10'000);
    GemmdProcess process(HostServerFlags(), WithThreads(limit));
    const std::string address = process.AwaitServing().address;
    if (address.empty()) {
      EXPECT_EQ(served, 0) << "it served with fewer";
      ++refused;
      EXPECT_EQ(process.ExitCode(), kExitFailure);
      continue;
    }
    ++served;
    ExpectServes(address);
    process.Signal(SIGTERM);
    EXPECT_EQ(process.ExitCode(), kExitOk) << process.ReadAll();
  }
  EXPECT_GT(refused, 3);
}

TEST(ThreadLimits, ARefusalNamesTheLimitAndWhatIsNeeded) {
  if (getuid() != 0) GTEST_SKIP() << "only root can give a process a user of its own";
  // Enough for the engine, which starts first, a sanitizer's thread included.
  const int limit = 6 + static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) + ThreadsOfGrpc();
  GemmdProcess process(HostServerFlags(), WithThreads(limit));
  const std::string output = process.ReadAll();
  EXPECT_EQ(process.ExitCode(), kExitFailure);
  EXPECT_THAT(output, AllOf(HasSubstr("too few threads are allowed: gRPC needs "),
                            HasSubstr(absl::StrCat("RLIMIT_NPROC (ulimit -u), for all of the "
                                                   "user's processes: ",
                                                   limit)),
                            ContainsRegex("Raise the limit by at least [0-9]+")))
      << output;
}

}  // namespace
}  // namespace gemmd
