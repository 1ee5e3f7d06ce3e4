// gemmctl's output: a device, a FIFO or a link at a path stays one, and a failed write
// is an exit status of 1.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/ctl/gemmctl_fixture.h"

namespace gemmd::ctl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kNoSpace = "No space left on device";

class OutputTest : public GemmctlTest {
 protected:
  // Of a program that may never end: killed after a while.
  static std::optional<Ran> WaitAWhile(Process& process) {
    const absl::Time limit = absl::Now() + absl::Seconds(60);
    while (!process.Ended()) {
      if (absl::Now() > limit) return std::nullopt;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return process.Wait();
  }

  std::string Text(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  size_t UnfinishedFiles() const {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(Path(""))) {
      count += entry.path().extension() == ".part" ? 1 : 0;
    }
    return count;
  }

  mode_t TypeOf(const std::string& name) const {
    struct stat info = {};
    EXPECT_EQ(lstat(Path(name).c_str(), &info), 0) << name;
    return info.st_mode & S_IFMT;
  }

  const std::vector<std::string> product_ = {"multiply", "random:8x8:f32:1", "random:8x8:f32:2"};
  std::vector<std::string> ProductInto(const std::string& path) const {
    std::vector<std::string> words = product_;
    words.insert(words.end(), {"-o", path});
    return words;
  }
};

TEST_F(OutputTest, EverySubcommandFailsWhereItsOutputCannotBeWritten) {
  const std::vector<std::vector<std::string>> commands = {
      {"--help"},
      {"version"},
      {"info"},
      {"info", "--json"},
      {"kernels"},
      {"matrix", "put", "random:4x4:f32", "--name", "m"},
      {"matrix", "list"},
      {"matrix", "get", "@m", "-o", Path("m.npy")},
      product_,
      {"bench", "--shape", "8", "--family", "host", "--iterations", "1"},
      {"bench", "--list-suites"},
      {"loadtest", "--requests", "2", "--warmup", "0", "--shape", "8x8x8"},
      {"matrix", "rm", "@m"},
  };
  for (const auto& words : commands) {
    const Ran ran = StartShell("exec \"$@\" >/dev/full", words)->Wait();
    EXPECT_EQ(ran.exit_code, 1) << words[0] << ran.err;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("gemmctl: RESOURCE_EXHAUSTED: standard output"),
                               HasSubstr(kNoSpace)))
        << words[0];
  }
}

TEST_F(OutputTest, AClosedStandardOutputIsAnErrorAndNoOtherFileGetsItsNumber) {
  const Ran ran = StartShell("exec \"$@\" >&-", product_)->Wait();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("standard output: cannot be written"));
}

// As of "gemmctl info | head": the reader has gone before the first word, and nothing is wrong.
TEST_F(OutputTest, AReaderThatHasSeenEnoughIsNoError) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const std::string unread =
      "exec 3<>" + Path("fifo") + " 4>" + Path("fifo") + " 3<&-; exec \"$@\" >&4 4>&-";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"info"}, {"kernels", "host"}, {"matrix", "list"}}) {
    const Ran ran = StartShell(unread, words)->Wait();
    EXPECT_EQ(ran.exit_code, 128 + SIGPIPE) << words[0];
    EXPECT_EQ(ran.err, "") << words[0];
  }
}

TEST_F(OutputTest, AResultIsWrittenThroughALinkAndADevice) {
  std::ofstream(Path("target.npy")) << "old";
  ASSERT_EQ(symlink("target.npy", Path("link.npy").c_str()), 0);
  EXPECT_EQ(Gemmctl(ProductInto(Path("link.npy"))).exit_code, 0);
  EXPECT_EQ(TypeOf("link.npy"), mode_t{S_IFLNK});
  EXPECT_EQ(ReadMatrix(Path("target.npy")).size(), 64u);

  if (mknod(Path("null").c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) {
    GTEST_SKIP() << "needs the right to make device nodes";
  }
  EXPECT_EQ(Gemmctl(ProductInto(Path("null"))).exit_code, 0);
  EXPECT_EQ(TypeOf("null"), mode_t{S_IFCHR});
  GemmctlJson({"matrix", "put", "random:4x4:f32", "--name", "m"});
  EXPECT_EQ(Gemmctl({"matrix", "get", "@m", "-o", Path("null")}).exit_code, 0);
  const std::vector<std::string> test = {"loadtest", "--requests", "1",      "--warmup",  "0",
                                         "--shape",  "8x8x8",      "--json", Path("null")};
  EXPECT_EQ(Gemmctl(test).exit_code, 0);
  const Ran bench = Gemmctl({"bench", "--shape", "8", "--family", "host", "--iterations", "1",
                             "--csv", Path("null"), "--json", Path("null"), "--svg", Path("null")});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_EQ(TypeOf("null"), mode_t{S_IFCHR});
  EXPECT_EQ(UnfinishedFiles(), 0u);
}

TEST_F(OutputTest, AResultGoesThroughAFifo) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = Text("fifo"); });
  const Ran ran = Gemmctl(ProductInto(Path("fifo")));
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  reader.join();
  EXPECT_THAT(got, StartsWith("\x93NUMPY"));
  EXPECT_EQ(got.size(), 128 + 8 * 8 * 4u);
}

TEST_F(OutputTest, ATerminalGetsNoMatrix) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  const std::string name = ptsname(terminal);
  GemmctlJson({"matrix", "put", "random:4x4:f32", "--name", "m"});
  const std::vector<std::string> get = {"matrix", "get", "@m", "-o", name};
  for (const std::vector<std::string>& words : {get, ProductInto(name)}) {
    const Ran ran = Gemmctl(words);
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_THAT(ran.err, AllOf(HasSubstr("--output"), HasSubstr(name + "' is a terminal")));
  }
  close(terminal);
}

// Where a file is to be written, as for --json.
TEST_F(OutputTest, AHyphenIsStandardOutputAndTablesGoBesideIt) {
  struct Case {
    std::vector<std::string> words;
    std::string begins;
    std::string beside;
  };
  const std::vector<std::string> bench = {
      "bench", "--shape", "8", "--family", "host", "--types", "f32", "--iterations", "1"};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  GemmctlJson({"matrix", "put", "random:4x4:f32", "--name", "m"});
  const std::vector<Case> cases = {
      {{"matrix", "get", "@m", "-o", "-"}, "\x93NUMPY", "4x4"},
      {with(bench, {"--csv", "-"}), "m,n,k,kernel,", "geometric means"},
      {with(bench, {"--svg", "-"}), "<svg", "geometric means"},
      {with(bench, {"--json", "-"}), "{", ""},
      {{"bench", "--list-suites", "--json", "-"}, "{", ""},
      {{"tune", "--shapes", "8", "--family", "host", "--rounds", "1", "-o", "-"},
       "gemmd tuning table",
       "KERNEL"},
      {{"loadtest", "--shape", "8x8x8", "--requests", "2", "--warmup", "0s", "--json", "-"},
       "{",
       ""},
  };
  for (const Case& test : cases) {
    const Ran ran = Gemmctl(test.words);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.out, StartsWith(test.begins));
    EXPECT_THAT(ran.err, HasSubstr(test.beside));
    if (test.beside.empty()) {
      EXPECT_FALSE(nlohmann::json::parse(ran.out, nullptr, false).is_discarded()) << ran.out;
    } else {
      EXPECT_EQ(ran.out.find(test.beside), std::string::npos) << ran.out;
    }
  }
  EXPECT_FALSE(std::filesystem::exists("-"));
  const Ran both = Gemmctl(with(bench, {"--csv", "-", "--json"}));
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--csv and --json both name \"-\""));
}

TEST_F(OutputTest, AFullDiskIsNamedAndLeavesNothing) {
  GemmctlJson({"matrix", "put", "random:4x4:f32", "--name", "m"});
  const std::vector<std::vector<std::string>> commands = {
      ProductInto("/dev/full"),
      {"matrix", "get", "@m", "-o", "/dev/full"},
      {"loadtest", "--requests", "1", "--warmup", "0", "--shape", "8x8x8", "--json", "/dev/full"},
      {"bench", "--shape", "8", "--family", "host", "--iterations", "1", "--csv", "/dev/full"},
      {"bench", "--shape", "8", "--family", "host", "--iterations", "1", "--json", "/dev/full"},
      {"bench", "--shape", "8", "--family", "host", "--iterations", "1", "--svg", "/dev/full"},
  };
  // Through a link, so that no defect can cost the machine its device.
  ASSERT_EQ(symlink("/dev/full", Path("full").c_str()), 0);
  for (auto words : commands) {
    words.back() = Path("full");
    Ran ran = Gemmctl(words);
    // The server ends the benchmark before a little after its caller has gone.
    while (ran.err.find("a benchmark runs already") != std::string::npos) ran = Gemmctl(words);
    EXPECT_EQ(ran.exit_code, 1) << words[0];
    EXPECT_THAT(ran.err, AllOf(HasSubstr("gemmctl: RESOURCE_EXHAUSTED: " + Path("full")),
                               HasSubstr(kNoSpace)));
    EXPECT_EQ(TypeOf("full"), mode_t{S_IFLNK});
  }
}

// Here not even a connection: nobody listens where these look for the server.
TEST_F(OutputTest, APathThatCannotBeWrittenIsRefusedBeforeAnyWork) {
  const std::string nowhere = Path("none/there");
  const std::vector<std::vector<std::string>> commands = {
      ProductInto(nowhere),
      {"matrix", "get", "@m", "-o", nowhere},
      {"loadtest", "--requests", "1", "--shape", "8x8x8", "--json", nowhere},
      {"bench", "--shape", "8", "--csv", nowhere},
      {"bench", "--shape", "8", "--json", nowhere},
      {"bench", "--shape", "8", "--svg", nowhere},
      {"tune", "--shapes", "8", "-o", nowhere},
  };
  for (auto words : commands) {
    words.insert(words.end(), {"--address", "unix:" + Path("nobody")});
    const Ran ran = Gemmctl(words);
    EXPECT_EQ(ran.exit_code, 1) << words[0];
    EXPECT_THAT(ran.err, AllOf(StartsWith("gemmctl: NOT_FOUND: " + nowhere),
                               HasSubstr("No such file or directory")))
        << words[0];
  }
}

TEST_F(OutputTest, OperandsAreNotReleasedForAResultThatCannotBeWritten) {
  GemmctlJson({"matrix", "put", "random:8x8:f32:1", "--name", "a"});
  const std::vector<std::string> words = {"multiply", "@a", "random:8x8:f32:2", "--release", "-o"};
  auto wrong = words, right = words;
  wrong.push_back(Path("none/d.npy"));
  right.push_back(Path("d.npy"));
  EXPECT_EQ(Gemmctl(wrong).exit_code, 1);
  EXPECT_EQ(Gemmctl(right).exit_code, 0) << "the operand is gone";
  EXPECT_EQ(UnfinishedFiles(), 0u);
}

TEST_F(OutputTest, AFileOverTheLimitOfItsSizeLeavesNothing) {
  const std::vector<std::string> words = {"multiply", "random:256x256:f32:1",
                                          "random:256x256:f32:2", "-o", Path("c.npy")};
  const Ran ran = StartShell("ulimit -f 64; exec \"$@\"", words)->Wait();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr(Path("c.npy")), HasSubstr("File too large")));
  EXPECT_FALSE(std::filesystem::exists(Path("c.npy")));
  EXPECT_EQ(UnfinishedFiles(), 0u);
}

TEST_F(OutputTest, AFifoAsAnOperandIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(Path("fifo.npy").c_str(), 0600), 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"multiply", Path("fifo.npy"), "random:4x4:f32"},
        std::vector<std::string>{"matrix", "put", Path("fifo.npy")},
        std::vector<std::string>{"matrix", "put", "/dev/zero"}}) {
    const auto process = Start(words);
    const std::optional<Ran> ran = WaitAWhile(*process);
    ASSERT_TRUE(ran.has_value()) << words[0] << " still waits";
    EXPECT_EQ(ran->exit_code, 1);
    EXPECT_THAT(ran->err, AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("not a regular file")));
  }
}

TEST_F(OutputTest, ANameThatIsNotUtf8StillGivesJson) {
  const std::string name = Path("caf\xe9.npy");
  std::vector<std::string> words = ProductInto(name);
  EXPECT_EQ(GemmctlJson(words)["output"], Path("caf\xef\xbf\xbd.npy"));
  EXPECT_TRUE(std::filesystem::exists(name));
  const std::vector<std::string> bench = {"bench",    "--shape", "8",
                                          "--family", "host",    "--iterations",
                                          "1",        "--svg",   Path("caf\xe9.svg")};
  EXPECT_THAT(GemmctlJson(bench)["metadata"]["command"].get<std::string>(),
              HasSubstr("caf\xef\xbf\xbd.svg"));
}

// The server's own answers, too.
TEST_F(OutputTest, HelpOfTheServerThatCannotBeWrittenFails) {
  for (const char* flag : {"--help", "--version"}) {
    Process process({"/bin/sh", "-c", "exec \"$0\" \"$1\" >/dev/full", GEMMD_PROGRAM, flag},
                    Path("full"));
    const Ran ran = process.Wait();
    EXPECT_EQ(ran.exit_code, 1) << flag;
    EXPECT_THAT(ran.err, HasSubstr(kNoSpace));
  }
}

}  // namespace
}  // namespace gemmd::ctl
