// Standard output's errors are noticed.
#include "files/output_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <string>

#include "files/part_files.h"
#include "tests/base/temporary_folder.h"

namespace gemmd::files {
namespace {

class OutputStreamTest : public ::testing::Test, protected TemporaryFolder {};

TEST_F(OutputStreamTest, WritesWhatIsPrintedAndClosesTheDescriptor) {
  const int fd = open(Path("out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  OutputStream out(fd, "out");
  const std::string line(1000, 'x');
  for (int i = 0; i < 20; ++i) out << line << '\n';
  out << "flushed" << std::flush;
  EXPECT_EQ(Content("out").size(), 20 * 1001 + 7u);
  out << '!';
  EXPECT_EQ(out.Close(), absl::OkStatus());
  EXPECT_EQ(Content("out").size(), 20 * 1001 + 8u);
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

TEST_F(OutputStreamTest, AFullDeviceIsToldAtTheLatestWhenItIsClosed) {
  OutputStream brief(open("/dev/full", O_WRONLY | O_CLOEXEC), "standard output");
  brief << "one line\n";
  const absl::Status status = brief.Close();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "standard output: cannot be written: No space left on device");

  OutputStream lengthy(open("/dev/full", O_WRONLY | O_CLOEXEC), "standard output");
  for (int i = 0; i < 100000; ++i) lengthy << i << '\n';
  EXPECT_TRUE(lengthy.bad());
  EXPECT_EQ(lengthy.Close().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(OutputStreamTest, ADescriptorThatIsClosedIsAnError) {
  const int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
  OutputStream out(fd, "standard output");
  close(fd);
  out << "x";
  EXPECT_THAT(std::string(out.Close().message()), ::testing::HasSubstr("Bad file descriptor"));
}

}  // namespace
}  // namespace gemmd::files
