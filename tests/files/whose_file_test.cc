// Files that a rename cannot replace, or could not leave as they were: of another user, in a folder
// that is not ours, mounted by themselves.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "files/output_file.h"
#include "files/part_files.h"
#include "tests/base/temporary_folder.h"

namespace gemmd::files {
namespace {

using ::testing::ElementsAre;

constexpr uid_t kOther = 1234;
constexpr int kNotAllowed = 77;  // the process could not be made what the test needs

struct stat StatOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info;
}

// What a process that runs `body` returns; kNotAllowed where it may not.
int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int AsOther(const std::function<int()>& body) {
  return InChild([&] {
    if (setgroups(0, nullptr) != 0 || setgid(kOther) != 0 || setuid(kOther) != 0) {
      return kNotAllowed;
    }
    return body();
  });
}

class WhoseFileTest : public ::testing::Test, protected TemporaryFolder {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs the right to give files to others";
    ASSERT_EQ(chmod(Path("").c_str(), 0777), 0);
  }

  void Make(const std::string& name, mode_t mode, uid_t owner) {
    ASSERT_EQ(WriteFile(Path(name), "old and long"), absl::OkStatus());
    ASSERT_EQ(chown(Path(name).c_str(), owner, owner), 0);
    ASSERT_EQ(chmod(Path(name).c_str(), mode), 0);
  }
};

TEST_F(WhoseFileTest, AFileStaysItsOwners) {
  Make("his", 0640, kOther);
  const ino_t before = StatOf(Path("his")).st_ino;
  ASSERT_EQ(WriteFile(Path("his"), "new"), absl::OkStatus());
  const struct stat after = StatOf(Path("his"));
  EXPECT_EQ(after.st_uid, kOther);
  EXPECT_EQ(after.st_gid, kOther);
  EXPECT_EQ(after.st_mode & 07777, 0640u);
  EXPECT_NE(after.st_ino, before) << "it could be replaced whole";
  EXPECT_EQ(Content("his"), "new");
}

TEST_F(WhoseFileTest, OneThatCannotBeGivenBackIsWrittenInPlace) {
  Make("mine", 0666, 0);
  EXPECT_EQ(AsOther([&] { return WriteFile(Path("mine"), "new").ok() ? 0 : 1; }), 0);
  EXPECT_EQ(StatOf(Path("mine")).st_uid, 0u);
  EXPECT_EQ(Content("mine"), "new");
  EXPECT_THAT(Names(), ElementsAre("mine"));
}

TEST_F(WhoseFileTest, OneThatMayNotBeWrittenIsRefusedWhenItIsOpened) {
  Make("mine", 0644, 0);
  EXPECT_EQ(AsOther([&] {
              return absl::IsPermissionDenied(OutputFile::Open(Path("mine")).status()) ? 0 : 1;
            }),
            0);
  EXPECT_EQ(Content("mine"), "old and long");
  EXPECT_THAT(Names(), ElementsAre("mine"));
}

TEST_F(WhoseFileTest, AFileMayBeWritableInAFolderThatIsNot) {
  Make("shared", 0666, 0);
  ASSERT_EQ(chmod(Path("").c_str(), 0755), 0);
  EXPECT_EQ(AsOther([&] { return WriteFile(Path("shared"), "new").ok() ? 0 : 1; }), 0);
  EXPECT_EQ(Content("shared"), "new");
  EXPECT_EQ(AsOther([&] { return OutputFile::Open(Path("another")).ok() ? 1 : 0; }), 0);
}

TEST_F(WhoseFileTest, AnErrorInPlaceSaysThatTheFileIsLost) {
  Make("mine", 0666, 0);
  EXPECT_EQ(AsOther([&] {
              PrepareProcess();
              const rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
              setrlimit(RLIMIT_FSIZE, &limit);
              const absl::Status written = WriteFile(Path("mine"), std::string(10000, 'x'));
              const std::string why(written.message());
              return why.find("what it had is gone") != why.npos ? 0 : 1;
            }),
            0);
}

TEST_F(WhoseFileTest, AFileThatIsMountedByItselfIsWrittenInPlace) {
  Make("source", 0644, 0);
  Make("mounted", 0644, 0);
  const int code = InChild([&] {
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount(Path("source").c_str(), Path("mounted").c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return kNotAllowed;
    }
    return WriteFile(Path("mounted"), "new").ok() ? 0 : 1;
  });
  if (code == kNotAllowed) GTEST_SKIP() << "needs the right to mount";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(Content("source"), "new");
  EXPECT_THAT(Names(), ElementsAre("mounted", "source"));
}

}  // namespace
}  // namespace gemmd::files
