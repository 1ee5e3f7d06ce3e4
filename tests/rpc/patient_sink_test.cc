// Log lines where nobody reads them, or nobody did for a while.
#include "server/logs/patient_sink.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/net/listen_socket.h"
#include "spdlog/logger.h"

namespace gemmd {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::Duration kPatience = absl::Milliseconds(200);
constexpr int kLines = 500;  // of 500 bytes: more than a pipe or a socket takes

enum class Kind { kPipe, kSocket, kTerminal };

class PatientSinkTest : public testing::TestWithParam<Kind> {
 protected:
  PatientSinkTest() {
    int ends[2] = {-1, -1};
    EXPECT_TRUE(Make(ends));
    reader_ = UniqueFd(ends[0]);
    writer_ = UniqueFd(ends[1]);
    const auto note = [](int64_t lines) { return absl::StrCat("left out ", lines, "\n"); };
    logger_ = std::make_unique<spdlog::logger>(
        "test", std::make_shared<PatientSink>(writer_.get(), kPatience, note));
    logger_->set_pattern("%v");
  }

  // The reader's end first.
  static bool Make(int (&ends)[2]) {
    switch (GetParam()) {
      case Kind::kPipe:
        return pipe(ends) == 0;
      case Kind::kSocket:
        return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0;
      case Kind::kTerminal:
        break;
    }
    // As it comes: no carriage returns.
    termios raw{};
    cfmakeraw(&raw);
    return openpty(&ends[0], &ends[1], nullptr, &raw, nullptr) == 0;
  }
  void Log(int count) {
    for (int i = 0; i < count; ++i) logger_->info("{} {}", i, std::string(500, 'x'));
  }
  std::string ReadWhatIsThere() {
    fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
    std::string text;
    char buffer[65536];
    for (ssize_t got; (got = read(reader_.get(), buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

  UniqueFd reader_, writer_;
  std::unique_ptr<spdlog::logger> logger_;
};

TEST_P(PatientSinkTest, WaitsOnceForAReaderAndTellsItLater) {
  const absl::Time begun = absl::Now();
  Log(kLines);
  EXPECT_LT(absl::Now() - begun, absl::Seconds(20)) << "each line would have waited";
  const std::string before = ReadWhatIsThere();
  EXPECT_THAT(before, StartsWith("0 x"));
  EXPECT_THAT(before, Not(HasSubstr("left out")));
  logger_->info("the reader is back");
  const std::string after = ReadWhatIsThere();
  EXPECT_THAT(after, StartsWith("\nleft out "));
  EXPECT_THAT(after, EndsWith("\nthe reader is back\n"));
  Log(1);
  EXPECT_THAT(ReadWhatIsThere(), StartsWith("0 x")) << "said once";
}

TEST_P(PatientSinkTest, AReaderThatReadsGetsEveryLine) {
  std::string text;
  for (int i = 0; i < kLines; ++i) {
    Log(1);
    text += ReadWhatIsThere();
  }
  EXPECT_EQ(text.size(), kLines * 503u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PatientSinkTest,
                         testing::Values(Kind::kPipe, Kind::kSocket, Kind::kTerminal),
                         [](const auto& info) {
                           return std::string(info.param == Kind::kPipe     ? "Pipe"
                                              : info.param == Kind::kSocket ? "Socket"
                                                                            : "Terminal");
                         });

}  // namespace
}  // namespace gemmd
