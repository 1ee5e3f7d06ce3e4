// Files that are read whole, and told apart by their version.
#include "server/identity/watched_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd {
namespace {

using ::testing::HasSubstr;

TEST(WatchedFile, IsReadUpToItsBound) {
  const std::string path = testing::TempDir() + "/watched_file_test.bound";
  std::ofstream(path) << "12345";
  const auto whole = ReadWholeFile(path, 5);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(*whole, "12345");
  const absl::Status long_one = ReadWholeFile(path, 4).status();
  EXPECT_EQ(long_one.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(long_one.message()), HasSubstr("more than 4 bytes; allowed: up to 4"));
  unlink(path.c_str());
}

TEST(WatchedFile, AFifoIsNotWaitedFor) {
  const std::string path = testing::TempDir() + "/watched_file_test.fifo";
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const absl::Status status = ReadWholeFile(path, 5).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not a regular file"));
  unlink(path.c_str());
}

TEST(WatchedFile, ThatIsGoneMayComeBack) {
  const std::string path = testing::TempDir() + "/watched_file_test.gone";
  std::ofstream(path) << "12345";
  const FileVersion before = VersionOf(path);
  EXPECT_NE(before, FileVersion());
  unlink(path.c_str());
  EXPECT_EQ(VersionOf(path), FileVersion());
  EXPECT_EQ(ReadWholeFile(path, 5).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace gemmd
