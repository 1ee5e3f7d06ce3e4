// A path that a user names may be anything.
#include "files/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "files/output_file.h"
#include "tests/base/temporary_folder.h"

namespace gemmd::files {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TextFileTest : public ::testing::Test, protected TemporaryFolder {};

TEST_F(TextFileTest, HasWhatTheFileHas) {
  const std::string text("a\n\0b", 4);
  ASSERT_EQ(WriteFile(Path("a"), text), absl::OkStatus());
  EXPECT_EQ(ReadText(Path("a"), 4).value_or(""), text);
  const absl::Status more = ReadText(Path("a"), 3).status();
  EXPECT_EQ(more.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(more.message(), AllOf(HasSubstr(Path("a") + ": "), HasSubstr("more than 3 bytes")));
}

TEST_F(TextFileTest, WhatIsNoTextIsAnErrorThatNamesThePath) {
  EXPECT_EQ(ReadText(Path("none"), 10).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(ReadText(Path("none"), 10).status().message(), HasSubstr(Path("none")));
  EXPECT_THAT(ReadText(Path("."), 10).status().message(), HasSubstr("Is a directory"));
  EXPECT_THAT(ReadText("/dev/zero", 100'000).status().message(), HasSubstr("more than 100000"));
}

TEST_F(TextFileTest, AFifoIsReadToItsEnd) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  std::thread writer([this] { EXPECT_EQ(WriteFile(Path("fifo"), "hello"), absl::OkStatus()); });
  EXPECT_EQ(ReadText(Path("fifo"), 10).value_or(""), "hello");
  writer.join();
}

TEST_F(TextFileTest, OnlyFilesAndLinksToThemAreRegular) {
  ASSERT_EQ(WriteFile(Path("a"), ""), absl::OkStatus());
  ASSERT_EQ(symlink("a", Path("link").c_str()), 0);
  EXPECT_TRUE(IsRegularFile(Path("a")));
  EXPECT_TRUE(IsRegularFile(Path("link")));
  for (const std::string& other : {Path("none"), Path("."), std::string("/dev/null")}) {
    EXPECT_FALSE(IsRegularFile(other)) << other;
  }
}

}  // namespace
}  // namespace gemmd::files
