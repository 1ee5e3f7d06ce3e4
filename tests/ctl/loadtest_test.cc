// gemmctl loadtest against a real server.
#include <signal.h>

#include <fstream>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/ctl/gemmctl_fixture.h"

namespace gemmd::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class LoadTestTest : public GemmctlTest {
 protected:
  // A test leaves nothing on the server.
  void ExpectEmptyStore() { EXPECT_EQ(GemmctlJson({"matrix", "list"})["matrices"].size(), 0); }
};

TEST_F(LoadTestTest, ClosedLoopVerifiesWhatItGets) {
  const auto json = GemmctlJson({"loadtest", "--concurrency", "3", "--duration", "3s", "--warmup",
                                 "500ms", "--shape", "96x80x64=3", "--shape", "17x33x5", "--kernel",
                                 "host_openblas=2", "--kernel", "host_reference", "--verify=0.2"});
  const auto& result = json["result"];
  EXPECT_EQ(result["failed"], 0) << result;
  EXPECT_GT(result["succeeded"], 10);
  // Each of three workers verifies its first of every shape and kernel.
  EXPECT_GE(result["verification"]["checked"], 4);
  EXPECT_EQ(result["verification"]["wrong"], 0);
  EXPECT_NEAR(result["wall_seconds"].get<double>(), 3, 1.5);
  EXPECT_NEAR(result["requests_per_second"].get<double>(),
              result["succeeded"].get<double>() / result["wall_seconds"].get<double>(), 1e-6);
  EXPECT_GT(result["tflops"], 0);
  EXPECT_GT(result["bytes_sent_per_second"], 0);
  EXPECT_GT(result["bytes_received_per_second"], 0);
  const auto& latency = result["latency_seconds"];
  EXPECT_EQ(latency["count"], result["succeeded"]);
  EXPECT_LE(latency["p50"], latency["p99"]);
  EXPECT_LE(latency["p99.9"], latency["max"]);
  for (const char* phase : {"receive", "queue", "h2d", "kernel", "d2h", "send", "total"}) {
    EXPECT_EQ(result["server_phase_seconds"][phase]["count"], result["succeeded"]) << phase;
  }
  EXPECT_LE(result["server_phase_seconds"]["kernel"]["p50"], latency["max"]);
  EXPECT_EQ(json["configuration"]["loop"], "closed");
  EXPECT_EQ(json["configuration"]["shapes"].size(), 2);
  EXPECT_EQ(json["configuration"]["shapes"][0]["weight"], 3);
  EXPECT_FALSE(json["server"]["version"].get<std::string>().empty());
}

TEST_F(LoadTestTest, OpenLoopKeepsItsRateAndSaysSoInATable) {
  const Ran ran = Gemmctl({"loadtest", "--rate",      "20",      "--duration", "3s",
                           "--warmup", "500ms",       "--shape", "64x64x64",   "--source",
                           "resident", "--result",    "both",    "--dtype",    "bf16",
                           "--verify", "--max-delay", "30s",     "--json",     Path("open.json")});
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("requests/s"), HasSubstr("TFLOPS"), HasSubstr("p99.9"),
                             HasSubstr("server kernel"), HasSubstr("wrong: 0")));
  EXPECT_THAT(ran.err, HasSubstr("errors 0\n"));
  std::ifstream file(Path("open.json"));
  const auto json = nlohmann::json::parse(file);
  EXPECT_EQ(json["configuration"]["loop"], "open");
  EXPECT_EQ(json["configuration"]["rate_per_second"], 20);
  // 3 s at 20 a second, planned ahead whatever the server does.
  EXPECT_EQ(json["result"]["requests"], 60);
  EXPECT_EQ(json["result"]["bytes_sent_per_second"], 0);
  EXPECT_GE(json["result"]["verification"]["checked"], 1);
  ExpectEmptyStore();
}

TEST_F(LoadTestTest, AnOverloadedOpenLoopCountsWhatItCouldNotSend) {
  const Ran ran = Gemmctl({"loadtest", "--rate", "5000", "--concurrency", "1", "--duration", "1s",
                           "--warmup", "0", "--max-delay", "20ms", "--shape", "256x256x256",
                           "--kernel", "host_reference", "--json"});
  EXPECT_EQ(ran.exit_code, 1);
  const auto result = nlohmann::json::parse(ran.out)["result"];
  EXPECT_EQ(result["requests"], 5000);
  EXPECT_GT(result["errors"]["NOT_SENT_IN_TIME"]["count"], 0);
  EXPECT_EQ(result["errors"]["NOT_SENT_IN_TIME"]["count"], result["failed"]);
}

TEST_F(LoadTestTest, EverySourceAndResultGivesRightProducts) {
  for (const char* source : {"sent", "resident", "generated"}) {
    for (const char* sink : {"stream", "keep", "both"}) {
      const auto json = GemmctlJson({"loadtest", "--requests", "6", "--warmup", "0",
                                     "--concurrency", "2", "--shape", "40x24x56", "--dtype", "f64",
                                     "--source", source, "--result", sink, "--verify=1"});
      EXPECT_EQ(json["result"]["succeeded"], 6) << source << ' ' << sink;
      EXPECT_EQ(json["result"]["verification"]["checked"], 6) << source << ' ' << sink;
      EXPECT_EQ(json["result"]["verification"]["wrong"], 0) << source << ' ' << sink;
    }
  }
  ExpectEmptyStore();
}

TEST_F(LoadTestTest, BatchesCountTheirProducts) {
  for (const char* source : {"sent", "resident"}) {
    const auto json = GemmctlJson({"loadtest", "--requests", "20", "--warmup", "0", "--batch", "50",
                                   "--shape", "8x6x4", "--source", source, "--verify=1"});
    const auto& result = json["result"];
    EXPECT_EQ(result["failed"], 0) << result;
    EXPECT_EQ(result["verification"]["wrong"], 0);
    EXPECT_EQ(json["configuration"]["batch"], 50);
    const double requests = result["requests_per_second"].get<double>();
    EXPECT_NEAR(result["products_per_second"].get<double>(), 50 * requests, 1e-6 * requests);
    EXPECT_NEAR(result["tflops"].get<double>() * 1e12, 50 * 2 * 8 * 6 * 4 * requests,
                1e-6 * requests);
  }
  ExpectEmptyStore();
}

TEST_F(LoadTestTest, GroupsShareTheRowsOfTheShape) {
  for (const char* source : {"sent", "resident"}) {
    const auto json = GemmctlJson({"loadtest", "--requests", "20", "--warmup", "0", "--group", "50",
                                   "--shape", "80x6x4", "--source", source, "--verify=1"});
    const auto& result = json["result"];
    EXPECT_EQ(result["failed"], 0) << result;
    EXPECT_EQ(result["verification"]["wrong"], 0);
    EXPECT_EQ(json["configuration"]["group"], 50);
    const double requests = result["requests_per_second"].get<double>();
    EXPECT_NEAR(result["products_per_second"].get<double>(), 50 * requests, 1e-6 * requests);
    EXPECT_NEAR(result["tflops"].get<double>() * 1e12, 2 * 80 * 6 * 4 * requests, 1e-6 * requests);
  }
  ExpectEmptyStore();
}

TEST_F(LoadTestTest, InterruptEndsItEarlyWithItsTable) {
  const auto process = Start({"loadtest", "--duration", "10m", "--warmup", "0", "--shape",
                              "32x32x32", "--source", "resident", "--result", "keep"});
  const absl::Time limit = absl::Now() + absl::Seconds(60);
  while (process->ErrSoFar().find("p50") == std::string::npos) {
    ASSERT_LT(absl::Now(), limit);
    absl::SleepFor(absl::Milliseconds(50));
  }
  process->Signal(SIGINT);
  const Ran ran = process->Wait();
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("ended early"), HasSubstr("server kernel")));
  ExpectEmptyStore();
}

// Refused before its operands are made, which would take minutes.
TEST_F(LoadTestTest, WhatTheServersLimitsDoNotAllowCostsNothing) {
  const absl::Time begun = absl::Now();
  const Ran batch = Gemmctl({"loadtest", "--batch", "65536", "--shape", "1024x1024x1024"});
  EXPECT_EQ(batch.exit_code, 1);
  EXPECT_THAT(batch.err, HasSubstr("--batch is 65536; the server takes 1 to 65535"));
  const Ran shape = Gemmctl({"loadtest", "--shape", "9000000x9000000x9000000"});
  EXPECT_EQ(shape.exit_code, 1);
  EXPECT_THAT(shape.err, AllOf(StartsWith("gemmctl: RESOURCE_EXHAUSTED"),
                               HasSubstr("9000000x9000000x9000000"), HasSubstr("--max-job-bytes")));
  EXPECT_LT(absl::Now() - begun, absl::Seconds(30));
}

TEST_F(LoadTestTest, SaysThatItMakesLargeOperands) {
  const Ran ran = Gemmctl({"loadtest", "--requests", "1", "--warmup", "0", "--concurrency", "1",
                           "--shape", "1x1x33554432"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, StartsWith("gemmctl: makes operands of 256 MiB on this machine\n"));
}

TEST_F(LoadTestTest, WhatTheServerCannotServeIsNotStarted) {
  const Ran ran = Gemmctl({"loadtest", "--duration", "10m", "--kernel", "no_such_kernel"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, AllOf(StartsWith("gemmctl: NOT_FOUND"), HasSubstr("no_such_kernel")));
}

}  // namespace
}  // namespace gemmd::ctl
