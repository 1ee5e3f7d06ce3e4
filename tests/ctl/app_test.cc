// The command line itself: help, usage errors and the lines that people see
// while something runs. Nothing here reaches a server.
#include "client/ctl/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/ctl/context.h"
#include "client/ctl/load/load_report.h"
#include "client/ctl/output/progress_bar.h"
#include "nlohmann/json.hpp"

namespace gemmd::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Said {
  int exit_code;
  std::string out;
  std::string err;
};

Said Say(std::vector<const char*> words) {
  words.insert(words.begin(), "gemmctl");
  std::ostringstream out;
  std::ostringstream err;
  const int code =
      RunGemmctl(static_cast<int>(words.size()), words.data(), {.out = out, .err = err});
  return {code, out.str(), err.str()};
}

TEST(AppTest, HelpTeachesExitCodesAndExamples) {
  const Said said = Say({"--help"});
  EXPECT_EQ(said.exit_code, kExitOk);
  EXPECT_THAT(said.out, AllOf(HasSubstr("Exit status:"), HasSubstr("3  a product failed"),
                              HasSubstr("GEMMCTL_ADDRESS"), HasSubstr("loadtest")));
}

TEST(AppTest, SaysItsVersion) {
  const Said said = Say({"--version"});
  EXPECT_EQ(said.exit_code, kExitOk);
  EXPECT_EQ(said.out, "gemmctl " + ClientVersion() + "\n");
}

TEST(AppTest, EverySubcommandHasExamples) {
  const std::vector<std::vector<const char*>> subcommands = {
      {"multiply"},     {"matrix"},         {"matrix", "put"}, {"matrix", "get"},
      {"matrix", "rm"}, {"matrix", "list"}, {"kernels"},       {"info"},
      {"version"},      {"loadtest"},       {"bench"}};
  for (std::vector<const char*> words : subcommands) {
    words.push_back("--help");
    const Said said = Say(words);
    EXPECT_EQ(said.exit_code, kExitOk);
    EXPECT_THAT(said.out, HasSubstr("Example")) << words[0];
    EXPECT_THAT(said.out, HasSubstr(std::string("  gemmctl "))) << words[0];
  }
}

TEST(AppTest, HelpSaysWhatS8IsDrawnFrom) {
  const std::vector<std::vector<const char*>> subcommands = {
      {"multiply", "--help"}, {"matrix", "put", "--help"}, {"loadtest", "--help"}};
  for (const std::vector<const char*>& words : subcommands) {
    const std::string help = absl::StrJoin(
        absl::StrSplit(Say(words).out, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
    EXPECT_THAT(help, HasSubstr("on [-128, 128) for s8")) << words[0];
  }
}

TEST(AppTest, AWrongContextStopsOnlyWhatNeedsAServer) {
  ASSERT_EQ(setenv("GEMMCTL_CONTEXT", "nope", 1), 0);
  const Said token = Say({"token", "zoe"});
  EXPECT_EQ(token.exit_code, kExitOk) << token.err;
  const Said version = Say({"version"});
  EXPECT_EQ(version.exit_code, kExitOk) << version.err;
  EXPECT_THAT(version.out, HasSubstr("GEMMCTL_CONTEXT"));
  const Said info = Say({"info"});
  EXPECT_EQ(info.exit_code, kExitUsage);
  EXPECT_THAT(info.err, HasSubstr("GEMMCTL_CONTEXT"));
  ASSERT_EQ(unsetenv("GEMMCTL_CONTEXT"), 0);
}

TEST(AppTest, ATokensLineIsOneThatTheServerTakes) {
  for (const char* roles : {"cal,matrix", "all,call", "call,", "", "Call"}) {
    const Said said = Say({"token", "zoe", "--roles", roles});
    EXPECT_EQ(said.exit_code, kExitUsage) << roles;
    EXPECT_THAT(said.err, Not(HasSubstr("sha256:"))) << roles;
  }
  EXPECT_EQ(Say({"token", "zoe,amy"}).exit_code, kExitUsage);
  EXPECT_THAT(Say({"token", "zoe", "--roles", "call,metrics"}).err,
              HasSubstr("zoe call,metrics sha256:"));
}

TEST(AppTest, UsageErrorsExitWithTwoAndNameTheWord) {
  struct Case {
    std::vector<const char*> words;
    const char* sentence;
  };
  const std::vector<Case> cases = {
      {{}, "gemmctl needs a subcommand: multiply, matrix, kernels"},
      {{"multiplicate"}, "multiplicate"},
      {{"multiply", "a.npy"}, "B"},
      {{"multiply", "a.npy", "b.npy", "--colour"}, "--colour"},
      {{"multiply", "a.npy", "b.npy", "--compute", "f13"}, "'f13' is not a compute mode"},
      {{"multiply", "a.npy", "b.npy", "--activation", "tanh"}, "there are none, relu, gelu"},
      {{"multiply", "a.npy", "random:3:f32"}, "'3' is not ROWSxCOLS"},
      {{"multiply", "a.npy", "b.npy", "--no-stream"}, "--no-stream needs --keep"},
      {{"multiply", "a.npy", "b.npy", "--keep", "--no-stream", "-o", "c"}, "nothing to write"},
      {{"multiply", "a.npy", "b.npy", "--ttl", "1m"}, "--ttl needs --keep"},
      {{"multiply", "a.npy", "b.npy", "--ttl", "soon"}, "'soon' is not a duration"},
      {{"multiply", "a.npy", "b.npy", "-o", ""}, "--output is given without a value"},
      {{"multiply", "a.npy", "b.npy", "--keep-name", ""}, "--keep-name is given without a value"},
      {{"matrix", "put", "a.npy", "--name", ""}, "--name is given without a value"},
      {{"matrix", "put", "a.npy", "--name", "a@b"},
       "--name: \"a@b\" is no name: it must be 1 to 128"},
      {{"multiply", "a.npy", "b.npy", "--keep-name", "c d"}, "--keep-name: \"c d\" is no name"},
      {{"loadtest", "--json", ""}, "--json is given without a value"},
      {{"--ca", "", "info"}, "--ca is given without a value"},
      {{"multiply", "a.npy", "b.npy", "--keep-replace"}, "--keep-replace needs --keep-name"},
      {{"multiply", "a.npy", "b.npy", "--beta", "2"}, "--c"},
      {{"multiply", "a.npy", "b.npy", "--c", "c.npy"}, "--beta"},
      {{"multiply", "a.npy", "b.npy", "--kernel", "x", "--family", "y"}, "--family"},
      {{"multiply", "a.npy", "b.npy", "--param", "split"}, "'split' is not a launch parameter"},
      {{"--channels", "65", "info"}, "65"},
      {{"info", "--deadline", "-3s"}, "'-3s' is not a duration"},
      {{"matrix"}, "matrix needs a subcommand: put, get, list, rm"},
      {{"multply", "a.npy", "b.npy"}, "there is no \"multply\": gemmctl needs a subcommand: mul"},
      {{"matrix", "frob"}, "there is no \"frob\": matrix needs a subcommand: put"},
      {{"multiply", "a", "b", "c", "d"}, "gemmctl: \"c\" was not expected"},
      {{"matrix", "mv"}, "mv"},
      {{"matrix", "put", "@there"}, "on the server already"},
      {{"matrix", "get", "@x"}, "--output"},
      {{"loadtest", "--shape", "512x64"}, "'512x64' is not a shape MxNxK"},
      {{"bench", "--shape", "16777217"}, "each 1 to 16777216"},
      {{"loadtest", "--shape", "2x2x2=0"}, "'0' is not a weight of 1 to 1000"},
      {{"loadtest", "--rate", "0"}, "'0' is not a rate"},
      {{"loadtest", "--source", "guessed"}, "'guessed' is not one of sent, resident, generated"},
      {{"loadtest", "--result", "0"}, "'0' is not one of stream, keep, both"},
      {{"loadtest", "--verify=2"}, "'2' is not a fraction of 0 to 1"},
      {{"loadtest", "--verify=nan"}, "'nan' is not a fraction of 0 to 1"},
      {{"loadtest", "--seed", "-1"}, "'-1' is not a seed of 0 to 2^64 - 1"},
      {{"loadtest", "--requests", "0"}, "'0' is not a whole number of at least 1"},
      {{"loadtest", "--batch", "100000"}, "65536"},
      {{"loadtest", "--dtype", "e4m3"}, "'e4m3' is not one of f64, f32, f16, bf16, s8"},
      {{"multiply", "a.npy", "b.npy", "--transport", "4"}, "'4' is not one of auto, unary, stream"},
      {{"multiply", "a.npy", "b.npy", "--alpha", "x"}, "'x' is not a number such as"},
      {{"multiply", "a.npy", "b.npy", "--keep-name", "c", "--keep-replace", "--keep-if-version",
        "-1"},
       "'-1' is not a version, a whole number of 0 to 2^64 - 1"},
      {{"matrix", "put", "a.npy", "--replace", "--if-version", "-1"}, "'-1' is not a version"},
      {{"matrix", "rm", "@a", "--if-version", "abc"}, "'abc' is not a version"},
      {{"explain", "-m", "0", "-n", "1", "-k", "1"}, "'0' is not a dimension of 1 to 16777216"},
  };
  for (const Case& test : cases) {
    const Said said = Say(test.words);
    EXPECT_EQ(said.exit_code, kExitUsage) << test.sentence;
    EXPECT_THAT(said.err, HasSubstr(test.sentence));
    EXPECT_EQ(said.out, "");
  }
}

TEST(ProgressBarTest, LineShowsShareAmountRateAndTimeLeft) {
  EXPECT_EQ(ProgressLine("upload", 512 << 20, 2048u << 20, absl::Seconds(2)),
            "upload [====>           ] 25%  512 MiB / 2.00 GiB  256 MiB/s  6 s left");
  EXPECT_THAT(ProgressLine("upload", 100, 100, absl::Seconds(1)),
              AllOf(HasSubstr("[================] 100%"), ::testing::Not(HasSubstr("left"))));
}

TEST(ProgressBarTest, DrawsAfterASecondAndErasesItself) {
  std::ostringstream out;
  absl::Duration now;
  {
    ProgressBar bar(out, true, "download", [&] { return now; });
    now = absl::Milliseconds(900);
    bar.Update(10, 100);
    EXPECT_EQ(out.str(), "");
    now = absl::Milliseconds(1100);
    bar.Update(20, 100);
    EXPECT_THAT(out.str(), HasSubstr("download ["));
    const size_t drawn = out.str().size();
    now = absl::Milliseconds(1150);
    bar.Update(30, 100);
    EXPECT_EQ(out.str().size(), drawn);
  }
  EXPECT_THAT(out.str(), ::testing::EndsWith("\r\x1b[K"));
}

TEST(ProgressBarTest, DrawsNothingWhereItIsNotEnabled) {
  std::ostringstream out;
  absl::Duration now;
  {
    ProgressBar bar(out, false, "download", [&] { return now; });
    now = absl::Seconds(10);
    bar.Update(10, 100);
  }
  EXPECT_EQ(out.str(), "");
}

LoadResult TwoSeconds() {
  LoadResult result{.wall = absl::Seconds(2)};
  result.tally.succeeded = 10;
  result.tally.failed = 2;
  result.tally.errors["RESOURCE_EXHAUSTED"] = {.count = 2, .first = "too much"};
  result.tally.flops = 4e12;
  result.tally.bytes_sent = 2048;
  result.tally.bytes_received = 4096;
  for (int i = 1; i <= 10; ++i) result.tally.latency.Record(absl::Milliseconds(i));
  return result;
}

TEST(LoadReportTest, RatesAreOverTheWallTime) {
  const Json json = ToJson(TwoSeconds());
  EXPECT_EQ(json["requests"], 12);
  EXPECT_EQ(json["requests_per_second"], 5);
  EXPECT_EQ(json["tflops"], 2);
  EXPECT_EQ(json["bytes_sent_per_second"], 1024);
  EXPECT_EQ(json["bytes_received_per_second"], 2048);
  EXPECT_EQ(json["errors"]["RESOURCE_EXHAUSTED"]["count"], 2);
  EXPECT_NEAR(json["latency_seconds"]["p50"].get<double>(), 0.005, 5e-6);
  EXPECT_EQ(json["latency_seconds"]["max"], 0.01);
  EXPECT_EQ(json["latency_seconds"]["mean"], 0.0055);
}

TEST(LoadReportTest, TheTableHasErrorsRatesAndPercentiles) {
  std::ostringstream out;
  PrintLoadTable(out, TwoSeconds());
  EXPECT_THAT(out.str(),
              AllOf(HasSubstr("12 in 2.00 s"), HasSubstr("RESOURCE_EXHAUSTED  2, first: too much"),
                    HasSubstr("1.00 KiB"), HasSubstr("p99.9"), HasSubstr("server queue")));
}

// As after a server that is gone: 0 us would be the best latency of all.
TEST(LoadReportTest, ATestThatCountedNothingHasRatesOfZeroAndNoLatency) {
  const Json json = ToJson(LoadResult{});
  EXPECT_EQ(json["requests_per_second"], 0);
  EXPECT_EQ(json["latency_seconds"]["count"], 0);
  for (const char* name : {"p50", "p99", "min", "max", "mean"}) {
    EXPECT_TRUE(json["latency_seconds"][name].is_null()) << name;
  }
  std::ostringstream out;
  PrintLoadTable(out, LoadResult{});
  EXPECT_THAT(out.str(), ::testing::ContainsRegex("latency +- +- +-"));
  EXPECT_THAT(LiveLine(absl::Seconds(4), absl::Seconds(1), Interval{}, 7),
              AllOf(HasSubstr("p50 -"), HasSubstr("p99 -"), HasSubstr("errors 7")));
}

TEST(LoadReportTest, TheLiveLineIsOfTheLastSecond) {
  Interval interval;
  interval.done = 50;
  interval.latency.Record(absl::Milliseconds(3));
  EXPECT_THAT(LiveLine(absl::Seconds(4), absl::Seconds(2), interval, 7),
              AllOf(StartsWith("    4 s  done 50"), HasSubstr("25.0/s"), HasSubstr("p50 3.00 ms"),
                    HasSubstr("errors 7")));
}

TEST(LoadReportTest, RequestsOfBatchesHaveTheirProducts) {
  LoadResult result = TwoSeconds();
  result.products = 50;
  std::ostringstream out;
  PrintLoadTable(out, result);
  EXPECT_THAT(out.str(), ::testing::ContainsRegex("products/s +250"));
  EXPECT_EQ(ToJson(result)["products_per_second"], 250);
}

}  // namespace
}  // namespace gemmd::ctl
