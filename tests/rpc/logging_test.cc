// Log lines: what programs and people read.
#include "server/logs/logging.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gemm/v1/gemm.pb.h"
#include "gmock/gmock.h"
#include "grpc/support/log.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace gemmd {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

TEST(Logging, JsonLinesAreJsonWhateverIsLogged) {
  SetUpLogging({.format = LogFormat::kJson, .level = LogLevel::kInfo});
  CaptureStderr();
  Log(LogLevel::kInfo, "a \"quoted\"\nline",
      {{"text", "tab\t\x01 \xff"},
       {"count", 3},
       {"seconds", 0.5},
       {"good", true},
       {"large", uint64_t{1} << 40}});
  const std::string text = GetCapturedStderr();
  ASSERT_THAT(text, EndsWith("\n"));
  const nlohmann::json line = nlohmann::json::parse(text);
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["msg"], "a \"quoted\"\nline");
  EXPECT_EQ(line["count"], 3);
  EXPECT_EQ(line["seconds"], 0.5);
  EXPECT_EQ(line["good"], true);
  EXPECT_EQ(line["large"], 1ll << 40);
  EXPECT_THAT(line["time"].get<std::string>(), EndsWith("Z"));
}

TEST(Logging, TextLinesQuoteWhatHasSpaces) {
  SetUpLogging({.format = LogFormat::kText, .level = LogLevel::kInfo});
  CaptureStderr();
  Log(LogLevel::kWarning, "serving", {{"address", "[::1]:1"}, {"model", "two words"}, {"n", 2}});
  EXPECT_THAT(GetCapturedStderr(),
              HasSubstr("warning serving address=[::1]:1 model=\"two words\" n=2\n"));
}

TEST(Logging, LinesBelowTheLevelAreNotWritten) {
  SetUpLogging({.format = LogFormat::kText, .level = LogLevel::kWarning});
  EXPECT_FALSE(LogEnabled(LogLevel::kInfo));
  EXPECT_TRUE(LogEnabled(LogLevel::kError));
  CaptureStderr();
  Log(LogLevel::kInfo, "quiet");
  Log(LogLevel::kError, "loud");
  const std::string text = GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("loud"));
  EXPECT_EQ(text.find("quiet"), std::string::npos);
}

TEST(Logging, LinesOfGrpcAreBounded) {
  SetUpLogging({.format = LogFormat::kText, .level = LogLevel::kWarning});
  CaptureStderr();
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  for (int i = 0; i < 1000; ++i) gpr_log(GPR_ERROR, "a handshake failed");
  Log(LogLevel::kWarning, "another line");
  const std::string text = GetCapturedStderr();
  EXPECT_GT(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 500);
  EXPECT_THAT(text, HasSubstr("another line")) << "others are not bounded";
}

TEST(Logging, LinesOfProtobufAreLoggedAsOthersAndBounded) {
  SetUpLogging({.format = LogFormat::kJson, .level = LogLevel::kWarning});
  gemm::v1::ListMatricesRequest request;
  const std::string not_utf8("\x1a\x02\xff\xfe", 4);
  CaptureStderr();
  for (int i = 0; i < 1000; ++i) (void)request.ParseFromString(not_utf8);
  const std::string text = GetCapturedStderr();
  int lines = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    ASSERT_FALSE(json.is_discarded()) << line;
    EXPECT_EQ(json["source"], "protobuf");
    EXPECT_EQ(json["level"], "warning");
    ++lines;
  }
  EXPECT_GT(lines, 0);
  EXPECT_LT(lines, 500);
}

TEST(LineLimit, SaysHowManyLinesWereLeftOut) {
  LineLimit limit({.lines = 2, .period = absl::Seconds(10)});
  const absl::Time begin = absl::UnixEpoch();
  EXPECT_THAT(limit.Take(begin), Optional(0));
  EXPECT_THAT(limit.Take(begin), Optional(0));
  EXPECT_EQ(limit.Take(begin), std::nullopt);
  EXPECT_EQ(limit.Take(begin + absl::Seconds(9)), std::nullopt);
  EXPECT_THAT(limit.Take(begin + absl::Seconds(10)), Optional(2));
  EXPECT_THAT(limit.Take(begin + absl::Seconds(19)), Optional(0));
  EXPECT_EQ(limit.Take(begin + absl::Seconds(19)), std::nullopt);
  EXPECT_THAT(limit.Take(begin + absl::Seconds(30)), Optional(1));
}

}  // namespace
}  // namespace gemmd
