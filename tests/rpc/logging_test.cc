// Log lines: what programs and people read.
#include "server/logging.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace gemmd {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
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

}  // namespace
}  // namespace gemmd
