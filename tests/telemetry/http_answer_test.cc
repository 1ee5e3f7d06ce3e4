#include "server/telemetry/http_answer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Answer(const std::string& line) {
  return AnswerRequest(line + "\r\nHost: here\r\n\r\n", [] { return std::string("x 1\n"); });
}

TEST(HttpAnswerTest, GetOfMetricsHasThem) {
  for (const char* line : {"GET /metrics HTTP/1.1", "GET /metrics?x=1 HTTP/1.0"}) {
    EXPECT_THAT(Answer(line),
                AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\nContent-Length: 4\r\n"),
                      HasSubstr("\r\nContent-Type: text/plain; version=0.0.4;"),
                      HasSubstr("\r\nConnection: close\r\n"), EndsWith("\r\n\r\nx 1\n")));
  }
}

TEST(HttpAnswerTest, HeadHasTheLengthAndNoBody) {
  EXPECT_THAT(Answer("HEAD /metrics HTTP/1.1"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\nContent-Length: 4\r\n"),
                    EndsWith("\r\n\r\n")));
}

TEST(HttpAnswerTest, OtherRequestsAreErrorsThatSaySo) {
  const struct {
    const char* line;
    const char* status;
  } kCases[] = {
      {"GET / HTTP/1.1", "404 Not Found"},
      {"GET /metrics/ HTTP/1.1", "404 Not Found"},
      {"GET /metricsx HTTP/1.1", "404 Not Found"},
      {"POST /metrics HTTP/1.1", "405 Method Not Allowed"},
      {"GET /metrics", "400 Bad Request"},
      {"GET  /metrics HTTP/1.1", "400 Bad Request"},
      {"PRI * HTTP/2.0", "400 Bad Request"},
      {"", "400 Bad Request"},
      {"\x16\x03\x01", "400 Bad Request"},
  };
  for (const auto& [line, status] : kCases) {
    EXPECT_THAT(Answer(line), StartsWith(absl::StrCat("HTTP/1.1 ", status, "\r\n"))) << line;
  }
}

}  // namespace
}  // namespace gemmd
