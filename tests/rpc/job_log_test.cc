// The log's lines of jobs, transfers and lost devices. All events also reach the next observer.
#include "server/logs/job_log.h"

#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/logs/logging.h"

namespace gemmd {
namespace {

using ::testing::ElementsAre;

// Records the events.
class NextObserver final : public EngineObserver {
 public:
  void OnJobEnd(const JobReport& report, const absl::Status&) override {
    told.push_back("job of " + report.kernel);
  }
  void OnTransferEnd(bool upload, uint64_t, absl::Duration, const absl::Status&) override {
    told.push_back(upload ? "upload" : "download");
  }
  void OnDeviceLost(const DeviceLoss& loss) override { told.push_back("loss of " + loss.device); }

  std::vector<std::string> told;
};

class JobLogTest : public testing::Test {
 protected:
  // The lines that `log` writes at this level.
  template <typename Use>
  std::vector<nlohmann::json> LinesOf(LogLevel level, Use use) {
    SetUpLogging({.format = LogFormat::kJson, .level = level});
    testing::internal::CaptureStderr();
    use(log_);
    std::istringstream text(testing::internal::GetCapturedStderr());
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  static JobReport Report(CheckResult result) {
    JobReport report;
    report.kernel = "good_kernel";
    report.device = "host:0";
    report.m = 3;
    report.check = {
        .result = result, .of_bound = 0.5, .failed_kernel = "bad_kernel", .failed_of_bound = 2.5};
    return report;
  }

  NextObserver next_;
  JobLog log_{next_};
};

TEST_F(JobLogTest, JobsAndTransfersAreLinesAtLevelDebugAlone) {
  const auto use = [](JobLog& log) {
    JobReport report;
    report.kernel = "good_kernel";
    log.OnJobEnd(report, absl::CancelledError("gone"));
    log.OnTransferEnd(/*upload=*/true, 77, absl::Seconds(2), absl::OkStatus());
    log.OnTransferEnd(/*upload=*/false, 78, absl::Seconds(3), absl::NotFoundError("none"));
  };
  const auto lines = LinesOf(LogLevel::kDebug, use);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["msg"], "job");
  EXPECT_EQ(lines[0]["code"], "CANCELLED");
  EXPECT_EQ(lines[0]["error"], "gone");
  EXPECT_EQ(lines[0]["kernel"], "good_kernel");
  EXPECT_EQ(lines[1]["msg"], "upload");
  EXPECT_EQ(lines[1]["bytes"], 77);
  EXPECT_EQ(lines[1]["seconds"], 2);
  EXPECT_EQ(lines[2]["msg"], "download");
  EXPECT_EQ(lines[2]["code"], "NOT_FOUND");
  EXPECT_TRUE(LinesOf(LogLevel::kInfo, use).empty());
  EXPECT_THAT(next_.told, ElementsAre("job of good_kernel", "upload", "download",
                                      "job of good_kernel", "upload", "download"));
}

TEST_F(JobLogTest, AProductThatWasReplacedIsALineWithItsKernels) {
  struct Finding {
    CheckResult result;
    const char* level;
    const char* message;
    const char* delivered;
  };
  const Finding findings[] = {
      {CheckResult::kLost, "error", "two kernels gave a wrong product", "none"},
      {CheckResult::kWrong, "error", "a kernel gave a wrong product; another's was delivered",
       "good_kernel"},
      {CheckResult::kSuspect, "warning", "a product was unlikely; another kernel's was delivered",
       "good_kernel"},
      {CheckResult::kUnusual, "warning",
       "an unlikely product of unusual operands; another kernel's was delivered", "good_kernel"},
  };
  for (const Finding& finding : findings) {
    const auto lines = LinesOf(LogLevel::kInfo, [&](JobLog& log) {
      log.OnJobEnd(Report(finding.result), absl::OkStatus());
    });
    ASSERT_EQ(lines.size(), 1u) << finding.message;
    EXPECT_EQ(lines[0]["msg"], finding.message);
    EXPECT_EQ(lines[0]["level"], finding.level) << finding.message;
    EXPECT_EQ(lines[0]["kernel"], "bad_kernel");
    EXPECT_EQ(lines[0]["delivered"], finding.delivered) << finding.message;
    EXPECT_EQ(lines[0]["m"], 3);
    EXPECT_EQ(lines[0]["of_bound"], 2.5);
  }
}

TEST_F(JobLogTest, AJobThatTheServerFailedIsALine) {
  JobReport report;
  report.kernel = "good_kernel";
  report.device = "host:0";
  for (const absl::Status& status : {absl::InternalError("x"), absl::UnavailableError("x"),
                                     absl::DataLossError("x"), absl::UnknownError("x")}) {
    const auto lines = LinesOf(LogLevel::kInfo, [&](JobLog& log) { log.OnJobEnd(report, status); });
    ASSERT_EQ(lines.size(), 1u) << status;
    EXPECT_EQ(lines[0]["msg"], "job failed");
    EXPECT_EQ(lines[0]["level"], "error");
    EXPECT_EQ(lines[0]["code"], absl::StatusCodeToString(status.code()));
    EXPECT_EQ(lines[0]["device"], "host:0");
  }
  for (const absl::Status& status :
       {absl::OkStatus(), absl::CancelledError("x"), absl::ResourceExhaustedError("x"),
        absl::InvalidArgumentError("x"), absl::DeadlineExceededError("x")}) {
    EXPECT_TRUE(
        LinesOf(LogLevel::kInfo, [&](JobLog& log) { log.OnJobEnd(report, status); }).empty())
        << status;
  }
  const auto lines = LinesOf(LogLevel::kInfo, [&](JobLog& log) {
    for (int i = 0; i < 1000; ++i) log.OnJobEnd(report, absl::UnavailableError("lost"));
  });
  EXPECT_EQ(lines.size(), 96u) << "100 a minute, of which 4 were above";
}

// Unusual operands do not fill the log.
TEST_F(JobLogTest, ManyAreFewLines) {
  const auto lines = LinesOf(LogLevel::kInfo, [&](JobLog& log) {
    for (int i = 0; i < 1000; ++i) log.OnJobEnd(Report(CheckResult::kUnusual), absl::OkStatus());
  });
  EXPECT_EQ(lines.size(), 100u);
  const auto wrong = LinesOf(LogLevel::kInfo, [&](JobLog& log) {
    for (int i = 0; i < 200; ++i) log.OnJobEnd(Report(CheckResult::kWrong), absl::OkStatus());
  });
  EXPECT_EQ(wrong.size(), 200u) << "what a caller cannot make is never left out";
}

TEST_F(JobLogTest, AProductThatPassedIsNone) {
  JobReport report = Report(CheckResult::kPassed);
  report.check.failed_kernel.clear();
  EXPECT_TRUE(LinesOf(LogLevel::kInfo, [&](JobLog& log) {
                log.OnJobEnd(report, absl::OkStatus());
              }).empty());
}

TEST_F(JobLogTest, ALostDeviceIsAnErrorThatSaysWhatBecameOfItsMatrices) {
  const auto lines = LinesOf(LogLevel::kError, [](JobLog& log) {
    log.OnDeviceLost({.device = "cuda:1",
                      .why = absl::UnavailableError("an illegal access"),
                      .matrices_lost = 2,
                      .matrices_moved = 5});
  });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["msg"], "device lost");
  EXPECT_EQ(lines[0]["device"], "cuda:1");
  EXPECT_EQ(lines[0]["reason"], "an illegal access");
  EXPECT_EQ(lines[0]["matrices_lost"], 2);
  EXPECT_EQ(lines[0]["matrices_moved"], 5);
  EXPECT_THAT(next_.told, ElementsAre("loss of cuda:1"));
}

}  // namespace
}  // namespace gemmd
