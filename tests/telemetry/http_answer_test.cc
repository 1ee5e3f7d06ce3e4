#include "server/telemetry/http_answer.h"

#include <string>

#include "gtest/gtest.h"

namespace gemmd {
namespace {

HttpAnswer Answer(const std::string& method, const std::string& target) {
  return AnswerRequest(method, target, [] { return std::string("x 1\n"); });
}

TEST(HttpAnswerTest, MetricsAreAnsweredWithThem) {
  for (const char* target : {"/metrics", "/metrics?x=1"}) {
    for (const char* method : {"GET", "HEAD"}) {
      const HttpAnswer answer = Answer(method, target);
      EXPECT_EQ(answer.status, 200);
      EXPECT_EQ(answer.type, "text/plain; version=0.0.4; charset=utf-8");
      EXPECT_EQ(answer.body, "x 1\n");
    }
  }
}

TEST(HttpAnswerTest, OtherRequestsAreErrorsThatSaySo) {
  for (const char* target : {"/", "/metrics/", "/metricsx", "", "*"}) {
    const HttpAnswer answer = Answer("GET", target);
    EXPECT_EQ(answer.status, 404) << target;
    EXPECT_EQ(answer.body, "There is only /metrics.\n");
  }
  const HttpAnswer answer = Answer("POST", "/metrics");
  EXPECT_EQ(answer.status, 405);
  EXPECT_EQ(answer.allow, "GET, HEAD");
}

}  // namespace
}  // namespace gemmd
