// What a path names stays what it is, and nothing unfinished is left.
#include "files/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "files/part_files.h"
#include "tests/base/temporary_folder.h"

namespace gemmd::files {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class OutputFileTest : public ::testing::Test, protected TemporaryFolder {};

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
  return info.st_mode;
}

// How a process that runs `body` ends, as waitpid tells it.
int InProcess(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST_F(OutputFileTest, WhatALinkHasStaysUntilTheFirstWriteOrTheClose) {
  ASSERT_EQ(WriteFile(Path("a"), "old"), absl::OkStatus());
  ASSERT_EQ(symlink("a", Path("link").c_str()), 0);
  {
    auto unused = OutputFile::Open(Path("link"));
    ASSERT_TRUE(unused.ok()) << unused.status();
  }
  EXPECT_EQ(Content("a"), "old");
  ASSERT_EQ(WriteFile(Path("link"), "n"), absl::OkStatus());
  EXPECT_EQ(Content("a"), "n");
  ASSERT_EQ(WriteFile(Path("link"), ""), absl::OkStatus());
  EXPECT_EQ(Content("a"), "");
}

TEST_F(OutputFileTest, AReaderThatGoesIsAnErrorAndNoEnd) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const int status = InProcess([this] {
    PrepareProcess();
    const int reader = open(Path("fifo").c_str(), O_RDONLY | O_NONBLOCK);
    auto file = OutputFile::Open(Path("fifo"));
    close(reader);
    if (!file.ok() || file->Write("x").ok()) _exit(1);
    _exit(7);
  });
  ASSERT_TRUE(WIFEXITED(status)) << "by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(OutputFileTest, APathIsOldOrNewAndNothingBetween) {
  ASSERT_EQ(WriteFile(Path("a"), "old"), absl::OkStatus());
  ASSERT_EQ(chmod(Path("a").c_str(), 0640), 0);
  auto file = OutputFile::Open(Path("a"));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->Write("new "), absl::OkStatus());
  ASSERT_EQ(file->Write("content"), absl::OkStatus());
  EXPECT_EQ(Content("a"), "old");
  ASSERT_EQ(file->Close(), absl::OkStatus());
  EXPECT_EQ(Content("a"), "new content");
  EXPECT_EQ(ModeOf(Path("a")), S_IFREG | 0640u);
  EXPECT_THAT(Names(), ElementsAre("a"));
}

TEST_F(OutputFileTest, AnUnfinishedFileLeavesThePathAsItWas) {
  ASSERT_EQ(WriteFile(Path("a"), "old"), absl::OkStatus());
  {
    auto file = OutputFile::Open(Path("a"));
    ASSERT_EQ(file->Write("new"), absl::OkStatus());
  }
  EXPECT_EQ(Content("a"), "old");
  EXPECT_THAT(Names(), ElementsAre("a"));
}

TEST_F(OutputFileTest, AFileThatGrowsIsSeenAsItGrows) {
  ASSERT_EQ(WriteFile(Path("a"), "old and long"), absl::OkStatus());
  auto file = OutputFile::Open(Path("a"), OutputFile::Visible::kAsItGrows);
  EXPECT_EQ(Content("a"), "old and long");
  ASSERT_EQ(file->Write("1\n"), absl::OkStatus());
  EXPECT_EQ(Content("a"), "1\n");
  ASSERT_EQ(file->Close(), absl::OkStatus());
}

// Opened before the work, which then did not begin.
TEST_F(OutputFileTest, NoFileIsMadeForNothing) {
  {
    auto file = OutputFile::Open(Path("a"), OutputFile::Visible::kAsItGrows);
    ASSERT_TRUE(file.ok()) << file.status();
    auto moved = *std::move(file);
  }
  EXPECT_THAT(Names(), IsEmpty());
  ASSERT_EQ(WriteFile(Path("a"), "old"), absl::OkStatus());
  { auto file = OutputFile::Open(Path("a"), OutputFile::Visible::kAsItGrows); }
  EXPECT_EQ(Content("a"), "old");
}

// As of `program -o /dev/stdout >> log`: opened anew, the log would lose what it had.
TEST_F(OutputFileTest, OwnOutputIsWrittenBehindWhatIsThere) {
  for (const int own : {STDOUT_FILENO, STDERR_FILENO}) {
    ASSERT_EQ(WriteFile(Path("log"), "before\n"), absl::OkStatus());
    const int saved = dup(own);
    const int log = open(Path("log").c_str(), O_WRONLY | O_APPEND);
    ASSERT_EQ(dup2(log, own), own);
    const std::string name = absl::StrCat("/proc/self/fd/", own);
    const absl::Status written = WriteFile(name, "of the file\n");
    const absl::Status by_its_path = WriteFile(Path("log"), "and again\n");
    const bool is_output = IsStandardOutput(name);
    const auto table = write(own, "after\n", 6);
    dup2(saved, own);
    close(saved);
    close(log);
    EXPECT_EQ(written, absl::OkStatus());
    EXPECT_EQ(is_output, own == STDOUT_FILENO);
    EXPECT_EQ(table, 6);
    EXPECT_EQ(by_its_path, absl::OkStatus());
    EXPECT_EQ(Content("log"), "before\nof the file\nand again\nafter\n");
  }
  EXPECT_FALSE(IsStandardOutput(Path("log")));
  EXPECT_FALSE(IsStandardOutput(Path("nowhere")));
}

TEST_F(OutputFileTest, KnowsATerminal) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  EXPECT_TRUE(IsTerminal(ptsname(terminal)));
  ASSERT_EQ(WriteFile(Path("file"), ""), absl::OkStatus());
  for (const std::string& other : {Path("file"), Path("nowhere"), std::string("/dev/null")}) {
    EXPECT_FALSE(IsTerminal(other)) << other;
  }
  const int saved = dup(STDOUT_FILENO);
  const int shown = open(ptsname(terminal), O_WRONLY | O_NOCTTY);
  dup2(shown, STDOUT_FILENO);
  const bool on_terminal = IsTerminal("-");
  dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
  const bool thrown_away = IsTerminal("-");
  dup2(saved, STDOUT_FILENO);
  close(shown);
  close(saved);
  close(terminal);
  EXPECT_TRUE(on_terminal);
  EXPECT_FALSE(thrown_away);
}

// Not a file of that name.
TEST_F(OutputFileTest, AHyphenIsStandardOutput) {
  ASSERT_EQ(WriteFile(Path("log"), "before\n"), absl::OkStatus());
  const int saved = dup(STDOUT_FILENO);
  const int log = open(Path("log").c_str(), O_WRONLY | O_APPEND);
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_EQ(dup2(log, STDOUT_FILENO), STDOUT_FILENO);
  const absl::Status written = WriteFile("-", "of the file\n");
  const bool is_output = IsStandardOutput("-");
  ASSERT_EQ(dup2(full, STDOUT_FILENO), STDOUT_FILENO);
  const absl::Status lost = WriteFile("-", "lost");
  (void)close(STDOUT_FILENO);
  const absl::Status closed = WriteFile("-", "lost");
  dup2(saved, STDOUT_FILENO);
  close(saved);
  close(log);
  close(full);
  EXPECT_EQ(written, absl::OkStatus());
  EXPECT_TRUE(is_output);
  EXPECT_EQ(Content("log"), "before\nof the file\n");
  EXPECT_THAT(std::string(lost.message()), StartsWith("standard output: cannot be written"));
  EXPECT_FALSE(closed.ok());
  struct stat info;
  EXPECT_NE(stat("-", &info), 0);
}

TEST_F(OutputFileTest, TheLongestNameIsWritten) {
  const std::string name(255, 'n');
  EXPECT_EQ(WriteFile(Path(name), "x"), absl::OkStatus());
  EXPECT_EQ(Content(name), "x");
}

// Not when it is renamed, when the work is done: a part file has a short name of its own.
TEST_F(OutputFileTest, ANameThatCannotBeIsRefusedWhenItIsOpened) {
  for (const std::string& path : {Path(std::string(256, 'n')), std::string()}) {
    const auto file = OutputFile::Open(path);
    EXPECT_FALSE(file.ok()) << path;
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(OutputFileTest, ASymbolicLinkStaysAndItsTargetIsWritten) {
  ASSERT_EQ(WriteFile(Path("target"), "old"), absl::OkStatus());
  ASSERT_EQ(symlink("target", Path("link").c_str()), 0);
  ASSERT_EQ(symlink("none yet", Path("dangling").c_str()), 0);
  EXPECT_EQ(WriteFile(Path("link"), "new"), absl::OkStatus());
  EXPECT_EQ(WriteFile(Path("dangling"), "made"), absl::OkStatus());
  EXPECT_TRUE(S_ISLNK(ModeOf(Path("link"))));
  EXPECT_TRUE(S_ISLNK(ModeOf(Path("dangling"))));
  EXPECT_EQ(Content("target"), "new");
  EXPECT_EQ(Content("none yet"), "made");
}

TEST_F(OutputFileTest, EveryNameOfAFileHasTheNewContent) {
  ASSERT_EQ(WriteFile(Path("a"), "old"), absl::OkStatus());
  ASSERT_EQ(link(Path("a").c_str(), Path("b").c_str()), 0);
  EXPECT_EQ(WriteFile(Path("a"), "new"), absl::OkStatus());
  EXPECT_EQ(Content("b"), "new");
}

TEST_F(OutputFileTest, ADeviceStaysADevice) {
  // A node of the test's own: the system's are not to be risked.
  if (mknod(Path("null").c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) {
    GTEST_SKIP() << "needs the right to make device nodes";
  }
  EXPECT_EQ(WriteFile(Path("null"), "gone"), absl::OkStatus());
  EXPECT_TRUE(S_ISCHR(ModeOf(Path("null"))));
  ASSERT_EQ(mknod(Path("full").c_str(), S_IFCHR | 0666, makedev(1, 7)), 0);
  const absl::Status full = WriteFile(Path("full"), "too much");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_EQ(full.message(), Path("full") + ": cannot be written: No space left on device");
  EXPECT_TRUE(S_ISCHR(ModeOf(Path("full"))));
  EXPECT_THAT(Names(), ElementsAre("full", "null"));
}

TEST_F(OutputFileTest, AFifoIsWrittenToItsReader) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = Content("fifo"); });
  EXPECT_EQ(WriteFile(Path("fifo"), "through"), absl::OkStatus());
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(S_ISFIFO(ModeOf(Path("fifo"))));
}

TEST_F(OutputFileTest, AFifoThatNobodyReadsIsGivenUp) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const absl::Status status = WriteFile(Path("fifo"), "nowhere");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nobody opened this FIFO"));
}

TEST_F(OutputFileTest, ErrorsBeginWithThePathAsItWasGiven) {
  EXPECT_EQ(WriteFile("/nowhere/a", "x").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(WriteFile("/nowhere/a", "x").message()), StartsWith("/nowhere/a: "));
  ASSERT_EQ(mkdir(Path("folder").c_str(), 0700), 0);
  const absl::Status folder = WriteFile(Path("folder"), "x");
  EXPECT_THAT(std::string(folder.message()), StartsWith(Path("folder") + ": "));
  EXPECT_THAT(std::string(folder.message()), HasSubstr("Is a directory"));
}

TEST_F(OutputFileTest, ASignalLeavesNoUnfinishedFile) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    const int status = InProcess([&] {
      (void)std::signal(signal, SIG_DFL);  // whatever this process was started with
      PrepareProcess();
      auto file = OutputFile::Open(Path("a"));
      if (!file.ok() || !file->Write("half").ok()) _exit(1);
      raise(signal);
    });
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_THAT(Names(), IsEmpty());
  }
}

// As in containers, where every process is number 1 and SIGKILL leaves its file.
TEST_F(OutputFileTest, WhatAKilledProcessLeftIsInNobodysWay) {
  constexpr int kNotAllowed = 77;
  for (size_t i = 1; i <= 3; ++i) {
    const int status = InProcess([&] {
      if (unshare(CLONE_NEWPID) != 0) _exit(kNotAllowed);
      const int one = InProcess([&] {
        const auto file = OutputFile::Open(Path("a"));
        _exit(file.ok() && getpid() == 1 ? 0 : 1);
      });
      _exit(WEXITSTATUS(one));
    });
    if (WEXITSTATUS(status) == kNotAllowed) {
      GTEST_SKIP() << "needs the right to have processes numbered anew";
    }
    EXPECT_EQ(status, 0);
    EXPECT_THAT(Names(), SizeIs(i));
  }
}

TEST_F(OutputFileTest, AFileOverItsLimitIsAnErrorAndLeavesNothing) {
  const int status = InProcess([&] {
    PrepareProcess();
    const rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status written = WriteFile(Path("a"), std::string(10000, 'x'));
    const bool right = absl::IsOutOfRange(written) &&
                       std::string(written.message()).find("File too large") != std::string::npos;
    _exit(right ? 7 : 1);
  });
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_THAT(Names(), IsEmpty());
}

}  // namespace
}  // namespace gemmd::files
