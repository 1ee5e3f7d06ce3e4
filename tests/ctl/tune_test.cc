// gemmctl tune and gemmctl explain against a real server.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/ctl/gemmctl_fixture.h"

namespace gemmd::ctl {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TuneTest : public GemmctlTest {
 protected:
  std::string Read(const std::string& name) {
    std::ifstream file(Path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(const std::string& name, const std::string& content) {
    std::ofstream(Path(name)) << content;
  }
};

TEST_F(TuneTest, WritesATableAndAddsToIt) {
  const Ran first = Gemmctl({"tune", "--shapes", "24x16x8", "--layouts", "nn,tn", "--rounds", "2",
                             "--iterations", "2", "-o", Path("a.tune")});
  EXPECT_EQ(first.exit_code, 0) << first.out << first.err;
  EXPECT_THAT(first.out,
              AllOf(HasSubstr("SHAPE"), HasSubstr("24x16x8"), HasSubstr("f32:f32:f32:f32"),
                    HasSubstr("a.tune"), HasSubstr("2, 2 of them from this run")));
  const std::string table = Read("a.tune");
  EXPECT_THAT(table, StartsWith("gemmd tuning table 1\n"));
  for (const char* const layout : {"nn", "tn"}) {
    EXPECT_THAT(table, HasSubstr(std::string("types=f32:f32:f32:f32 layout=") + layout +
                                 " epilogue=plain shape=24x16x8 seconds="));
  }
  Write("shapes.txt", "# of a model\n24x16x8 40\n");
  const auto json = GemmctlJson({"tune", "--shapes-file", Path("shapes.txt"), "--rounds", "1",
                                 "--kernel", "host_reference", "-o", Path("a.tune")});
  ASSERT_EQ(json["entries"].size(), 2u);
  EXPECT_EQ(json["entries"][0]["kernel"], "host_reference");
  EXPECT_GT(json["entries"][0]["seconds"], 0);
  const std::string merged = Read("a.tune");
  EXPECT_THAT(merged, ContainsRegex("layout=nn epilogue=plain shape=24x16x8 "
                                    "seconds=[^ ]* kernel=host_reference\n"));
  EXPECT_THAT(merged, AllOf(HasSubstr("shape=40x40x40"), HasSubstr("layout=tn")));
}

TEST_F(TuneTest, TakesOnlyWhatItCanUse) {
  EXPECT_EQ(Gemmctl({"tune", "-o", Path("x.tune")}).exit_code, 2);
  const Ran nowhere = Gemmctl({"tune", "--shapes", "8"});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("--output"));
  const Ran shape = Gemmctl({"tune", "--shapes", "8x8", "-o", Path("x.tune")});
  EXPECT_EQ(shape.exit_code, 2);
  EXPECT_THAT(shape.err, HasSubstr("8x8"));
  const Ran none =
      Gemmctl({"tune", "--shapes", "8", "--types", "s32", "-o", Path("x.tune"), "--quiet"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("NOT_FOUND"));
  const Ran device =
      Gemmctl({"tune", "--shapes", "8", "--device", "cuda:0", "-o", Path("x.tune"), "--quiet"});
  EXPECT_EQ(device.exit_code, 1);
  EXPECT_THAT(device.err, HasSubstr("device is \"cuda:0\", but this server has host:0"));
  Write("broken.tune", "gemmd tuning table 1\nhello\n");
  const Ran broken = Gemmctl({"tune", "--shapes", "8", "-o", Path("broken.tune")});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_THAT(broken.err, HasSubstr("broken.tune line 2: "));
  EXPECT_EQ(Read("broken.tune"), "gemmd tuning table 1\nhello\n");
  EXPECT_EQ(Read("x.tune"), "");
}

// Read as a table only where it is a file, and opened before anything is measured.
TEST_F(TuneTest, AnOutputMayBeADeviceAndIsNoFolder) {
  const std::vector<std::string> tune = {"tune",           "--shapes", "8", "--kernel",
                                         "host_reference", "--rounds", "1", "-o"};
  const auto to = [&](const std::string& path) {
    std::vector<std::string> words = tune;
    words.push_back(path);
    return Gemmctl(words);
  };
  EXPECT_EQ(to("/dev/null").exit_code, 0);
  const Ran full = to("/dev/full");
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("No space left on device"));
  const Ran folder = to(Path(""));
  EXPECT_EQ(folder.exit_code, 1);
  EXPECT_THAT(folder.err, HasSubstr("Is a directory"));
  const Ran nowhere = to("/nowhere/at/all.tune");
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_THAT(nowhere.out, Not(HasSubstr("8x8x8"))) << "found out before it is measured";
}

TEST_F(TuneTest, ReportsAreOpenedBeforeAnythingIsMeasured) {
  const std::vector<std::string> bench = {"bench",          "--shape", "8",   "--kernel",
                                          "host_reference", "--types", "f32", "--quiet"};
  for (const char* option : {"--json", "--svg", "--csv"}) {
    std::vector<std::string> words = bench;
    words.insert(words.end(), {option, "/nowhere/at/all"});
    const Ran ran = Gemmctl(words);
    EXPECT_EQ(ran.exit_code, 1) << option;
    EXPECT_THAT(ran.err, HasSubstr("/nowhere/at/all"));
    EXPECT_THAT(ran.out, Not(HasSubstr("host_reference"))) << option;
  }
  const Ran load = Gemmctl({"loadtest", "--shape", "8x8x8", "--warmup", "0s", "--requests", "5",
                            "--json", "/nowhere/at/all"});
  EXPECT_EQ(load.exit_code, 1);
  EXPECT_THAT(load.out, Not(HasSubstr("latency")));
}

TEST_F(TuneTest, WhatIsTooLargeToMeasureIsNoSuccess) {
  const Ran none = Gemmctl({"tune", "--shapes", "50000", "--quiet", "-o", Path("x.tune")});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("nothing was measured"));
  EXPECT_FALSE(std::filesystem::exists(Path("x.tune")));
}

TEST_F(TuneTest, AFileOfShapesMustBeOne) {
  for (const std::string& path : {Path(""), std::string("/dev/zero"), std::string("/nowhere")}) {
    const Ran refused = Gemmctl({"tune", "--shapes-file", path, "-o", Path("x.tune")});
    EXPECT_EQ(refused.exit_code, 2) << path;
    EXPECT_THAT(refused.err, HasSubstr(path));
  }
}

// From the measurement to the product: a server takes what its table says, and explains it.
TEST_F(TuneTest, AServerWithTheTableTakesItsKernel) {
  const Ran tuned = Gemmctl({"tune", "--shapes", "24x16x8", "--rounds", "1", "--kernel",
                             "host_reference", "-o", Path("t.tune")});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const std::string address = AddressOf("tuned");
  const auto server =
      StartServer("tuned", {"--metrics-address=", "--tuning-tables=" + Path("t.tune")});
  const Ran exact = Gemmctl({"--address", address, "explain", "-m", "24", "-n", "16", "-k", "8"});
  EXPECT_THAT(exact.out, AllOf(ContainsRegex("auto takes +host_reference"),
                               ContainsRegex("by +table exact"), ContainsRegex("[0-9] [mun]*s")));
  const auto near = GemmctlJson(
      {"--address", address, "explain", "-m", "25", "-n", "16", "-k", "8", "--epilogue"});
  EXPECT_EQ(near["rule"], "table near");
  EXPECT_EQ(near["kernels"][0]["tuned_from"]["m"], 24);
  EXPECT_EQ(near["kernels"][0]["tuned_from"]["other_epilogue"], true);
  const auto product = GemmctlJson(
      {"--address", address, "multiply", "random:24x8:f32", "random:8x16:f32", "--verify"});
  EXPECT_THAT(product.dump(), AllOf(HasSubstr("\"kernel\":\"host_reference\""),
                                    HasSubstr("\"rule\":\"table exact\""),
                                    HasSubstr("fastest of the measured for 24x16x8")));
  // It takes up what the file says now.
  std::filesystem::remove(Path("t.tune"));
  ASSERT_EQ(Gemmctl({"tune", "--shapes", "24x16x8", "--rounds", "1", "--kernel", "host_openblas",
                     "-o", Path("t.tune")})
                .exit_code,
            0);
  const Ran applied = Gemmctl({"--address", address, "tune", "--apply"});
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_THAT(applied.out, AllOf(ContainsRegex("entries +1"), ContainsRegex("used here +1")));
  const auto again =
      GemmctlJson({"--address", address, "explain", "-m", "24", "-n", "16", "-k", "8"});
  EXPECT_EQ(again["kernels"][0]["name"], "host_openblas");
  EXPECT_EQ(again["rule"], "table exact");
  Write("t.tune", "gemmd tuning table 1\nhello\n");
  const Ran refused = Gemmctl({"--address", address, "tune", "--apply"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("t.tune line 2: ")));
  server->Signal(SIGTERM);
  const Ran ended = server->Wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_THAT(ended.out + ended.err,
              AllOf(HasSubstr("tuning tables"), HasSubstr("tuning tables read again"),
                    HasSubstr("tuning tables not taken; what was read before stays in force")));
}

TEST_F(TuneTest, ApplyIsAloneAndNeedsAServerWithTables) {
  for (const std::vector<std::string>& other :
       std::vector<std::vector<std::string>>{{"--shapes", "8"},
                                             {"--suite", "odd"},
                                             {"-o", Path("x.tune")},
                                             {"--kernel", "host_*"},
                                             {"--rounds", "1"}}) {
    std::vector<std::string> arguments = {"tune", "--apply"};
    arguments.insert(arguments.end(), other.begin(), other.end());
    const Ran ran = Gemmctl(arguments);
    EXPECT_EQ(ran.exit_code, 2) << other[0];
    EXPECT_THAT(ran.err, HasSubstr("--apply")) << other[0];
  }
  const Ran ran = Gemmctl({"tune", "--apply"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("--tuning-tables")));
}

// What the server has seen is measured, each product in its own types and layout.
TEST_F(TuneTest, MeasuresTheServersTraffic) {
  const Ran none = Gemmctl({"tune", "--traffic", "-o", Path("none.tune")});
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_THAT(none.err, HasSubstr("nothing to tune"));
  EXPECT_EQ(Read("none.tune"), "");
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Gemmctl({"multiply", "random:700x500:f32", "random:500x600:f32"}).exit_code, 0);
  }
  ASSERT_EQ(Gemmctl({"multiply", "random:24x8:f16", "random:8x16:f16"}).exit_code, 0);
  const auto json = GemmctlJson({"tune", "--traffic", "--rounds", "1", "--iterations", "2",
                                 "--kernel", "host_openblas", "-o", Path("traffic.tune")});
  ASSERT_EQ(json["entries"].size(), 2u) << json.dump();
  const std::string table = Read("traffic.tune");
  EXPECT_THAT(
      table, AllOf(HasSubstr("types=f16:f16:f16:f32 layout=nn epilogue=plain shape=24x16x8 "),
                   HasSubstr("types=f32:f32:f32:f32 layout=nn epilogue=plain shape=700x600x500 ")));
  const auto first =
      GemmctlJson({"tune", "--traffic", "--limit", "1", "--rounds", "1", "--iterations", "2",
                   "--kernel", "host_openblas", "-o", Path("first.tune")});
  ASSERT_EQ(first["entries"].size(), 1u);
  EXPECT_EQ(first["entries"][0]["m"], 700);
  EXPECT_EQ(Gemmctl({"tune", "--traffic", "--shapes", "8", "-o", Path("x.tune")}).exit_code, 2);
  EXPECT_EQ(Gemmctl({"tune", "--traffic", "--types", "f16", "-o", Path("x.tune")}).exit_code, 2);
  EXPECT_EQ(Gemmctl({"tune", "--shapes", "8", "--limit", "3", "-o", Path("x.tune")}).exit_code, 2);
}

TEST_F(TuneTest, ExplainsTheChoice) {
  const Ran ran = Gemmctl({"explain", "-m", "64", "-n", "32", "-k", "16"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("64 x 32 x 16  f32:f32:f32:f32  nn"), HasSubstr("host:0, "),
                    ContainsRegex("auto takes +host_openblas"), ContainsRegex("by +rank"),
                    HasSubstr("ranked first of 2 eligible kernels"), HasSubstr("host_reference")));
  const Ran first = Gemmctl({"explain", "-m", "64", "-n", "32", "-k", "16", "--top", "1"});
  EXPECT_THAT(first.out, AllOf(HasSubstr("and 1 more"), Not(HasSubstr("host_reference"))));
  const auto json =
      GemmctlJson({"explain", "-m", "1", "-n", "2", "-k", "3", "--types", "f16", "--layout", "nt"});
  EXPECT_EQ(json["types"], "f16:f16:f16:f32");
  EXPECT_EQ(json["rule"], "rank");
  EXPECT_EQ(json["kernels"].size(), 2u);
  EXPECT_EQ(Gemmctl({"explain", "-m", "1", "-n", "2"}).exit_code, 2);
  EXPECT_EQ(Gemmctl({"explain", "-m", "1", "-n", "2", "-k", "3", "--types", "f16,f32"}).exit_code,
            2);
}

}  // namespace
}  // namespace gemmd::ctl
