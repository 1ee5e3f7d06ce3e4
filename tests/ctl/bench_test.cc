// gemmctl bench against a real server.
#include <signal.h>

#include <fstream>
#include <iterator>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/ctl/gemmctl_fixture.h"

namespace gemmd::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class BenchTest : public GemmctlTest {
 protected:
  std::string Read(const std::string& name) {
    std::ifstream file(Path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(BenchTest, PrintsTheTableOfGemmBenchAndWritesItsFiles) {
  const Ran ran =
      Gemmctl({"bench", "--shapes", "24x16x8,40", "--family", "host", "--types", "f32:f32:f32:f32",
               "--iterations", "3", "--warmup", "1", "--cutoff", "1e9", "--csv", Path("rows.csv"),
               "--json", Path("rows.json"), "--svg", Path("rows.svg")});
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(ran.out, StartsWith("device "));
  EXPECT_THAT(ran.out, AllOf(HasSubstr("M=24, N=16, K=8  f32:f32:f32:f32  nn  1/2"),
                             HasSubstr("M=40, N=40, K=40  f32:f32:f32:f32  nn  2/2"),
                             HasSubstr("of OpenBLAS"), HasSubstr("host_reference"),
                             HasSubstr("geometric means, kernel by kernel"),
                             HasSubstr("command            gemmctl bench --shapes 24x16x8,40")));
  EXPECT_THAT(ran.out, Not(HasSubstr("WRONG")));

  const std::string csv = Read("rows.csv");
  EXPECT_THAT(csv, AllOf(StartsWith("m,n,k,kernel,family,types,layout,"),
                         HasSubstr("24,16,8,host_openblas,host,f32:f32:f32:f32,nn,"),
                         HasSubstr("40,40,40,host_reference,host,f32:f32:f32:f32,nn,")));
  const auto json = nlohmann::json::parse(Read("rows.json"));
  EXPECT_EQ(json["metadata"]["its device"], "host:0");
  ASSERT_EQ(json["rows"].size(), 4);
  for (const auto& row : json["rows"]) {
    EXPECT_EQ(row["right"], true) << row;
    EXPECT_EQ(row["iterations"], 3) << row;
    EXPECT_GT(row["tflops"], 0) << row;
    EXPECT_GT(row["of_vendor"], 0) << row;
  }
  EXPECT_EQ(json["kernels"].size(), 2);
  EXPECT_THAT(Read("rows.svg"), AllOf(StartsWith("<svg"), HasSubstr("host_openblas")));
}

TEST_F(BenchTest, PrintsJsonForPrograms) {
  const auto json =
      GemmctlJson({"bench", "--shape", "20", "--kernel", "*_reference", "--types", "f16:f16:f32",
                   "--layout", "nt", "--no-baselines", "--distribution", "uniform", "--iterations",
                   "1", "--device", "host:0"});
  ASSERT_GE(json["rows"].size(), 1);
  for (const auto& row : json["rows"]) {
    EXPECT_EQ(row["kernel"], "host_reference");
    EXPECT_THAT(row["types"].get<std::string>(), StartsWith("f16:f16:f32:"));
    EXPECT_EQ(row["layout"], "nt");
    EXPECT_TRUE(row["of_vendor"].is_null());
    EXPECT_EQ(row["right"], true);
  }
}

TEST_F(BenchTest, BriefPrintsTheMeansAlone) {
  const Ran ran = Gemmctl({"bench", "--shape", "20", "--family", "host", "--brief"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(Not(HasSubstr("M=20")), HasSubstr("geometric means")));
}

TEST_F(BenchTest, ListsTheSuites) {
  const Ran ran = Gemmctl({"bench", "--list-suites"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("hgemm-27: "), HasSubstr("4096x4096x2048")));
  const auto json = GemmctlJson({"bench", "--list-suites"});
  EXPECT_EQ(json["suites"][0]["name"], "sgemm-8");
  EXPECT_EQ(json["suites"][0]["shapes"].size(), 8);
}

TEST_F(BenchTest, NothingMeasuredIsAFailure) {
  const Ran ran =
      Gemmctl({"bench", "--quiet", "--types", "f32", "--iterations", "1", "--shape", "50000"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("nothing was measured: "));
}

TEST_F(BenchTest, WhatThereIsNotHasItsSentence) {
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    std::string sentence;
  };
  const std::vector<Case> cases = {
      {{"bench"}, 2, "--suite or --shapes"},
      {{"bench", "--suite", "hgemm-28"}, 2, "hgemm-27"},
      {{"bench", "--shape", "3x4"}, 2, "\"3x4\" is no shape"},
      {{"bench", "--shape", "8", "--types", "f17"}, 2, "\"f17\" is no element type"},
      {{"bench", "--shape", "8", "--seed", "-1"}, 2, "\"-1\" is not a seed of 0 to 2^64 - 1"},
      {{"bench", "--shape", "8", "--budget", "nan"},
       2,
       "\"nan\" is not a number of seconds above 0"},
      {{"bench", "--shape", "8", "--budget", "0"}, 2, "\"0\" is not a number of seconds above 0"},
      {{"bench", "--shape", "8", "--cutoff", "nan"},
       2,
       "\"nan\" is not a number of 1 to 1000000000"},
      {{"bench", "--shape", "8", "--block-scales", "lines:tiles", "--types", "f32"},
       2,
       "--block-scales: a server measures products without block scales"},
      {{"bench", "--shape", "8", "--json", Path("a"), "--csv", Path("a")},
       2,
       "--csv and --json both name"},
      {{"bench", "--shape", "8", "--kernel", "host_openblass"}, 1, "NOT_FOUND: no kernel"},
      {{"bench", "--shape", "8", "--family", "hots"}, 1, "no family is named \"hots\""},
      {{"bench", "--shape", "8", "--device", "cuda:7"}, 1, "host:0"},
      {{"bench", "--shape", "8", "--family", "host", "--budget", "601"}, 1, "--benchmark-limit"},
      {{"bench", "--shape", "8", "--family", "host", "--csv", "/no/such/place.csv"},
       1,
       "/no/such/place.csv"},
  };
  for (const Case& test : cases) {
    const Ran ran = Gemmctl(test.arguments);
    EXPECT_EQ(ran.exit_code, test.exit_code) << ran.out << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(test.sentence));
    EXPECT_EQ(ran.out, "");
  }
}

TEST_F(BenchTest, InterruptEndsItWithTheRowsItHad) {
  const auto process = Start({"bench", "--shape", "16,300", "--family", "host", "--iterations",
                              "600", "--cutoff", "1e9", "--csv", Path("part.csv")});
  const absl::Time limit = absl::Now() + absl::Seconds(60);
  while (Read("part.csv").find("16,16,16,host_reference") == std::string::npos) {
    ASSERT_LT(absl::Now(), limit);
    ASSERT_FALSE(process->Ended());
    absl::SleepFor(absl::Milliseconds(20));
  }
  process->Signal(SIGINT);
  const Ran ran = process->Wait();
  EXPECT_EQ(ran.exit_code, 0) << ran.out;
  EXPECT_THAT(ran.err, HasSubstr("gemmctl: ended early"));
  EXPECT_THAT(ran.out, AllOf(HasSubstr("M=16"), Not(HasSubstr("M=300")),
                             HasSubstr("geometric means, kernel by kernel")));
}

// The server ends a launch that has begun, after the client has gone.
TEST_F(BenchTest, OneThatWasGivenUpDoesNotStopTheNext) {
  const std::vector<std::string> small = {"bench",   "--shape", "16",           "--family", "host",
                                          "--types", "f32",     "--iterations", "1"};
  const Ran full = Gemmctl({"bench", "--shape", "16,700", "--kernel", "host_reference", "--types",
                            "f64", "--iterations", "20", "--cutoff", "1e9", "--csv", "/dev/full"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("No space left on device"));
  const Ran next = Gemmctl(small);
  EXPECT_EQ(next.exit_code, 0) << next.err;
}

}  // namespace
}  // namespace gemmd::ctl
