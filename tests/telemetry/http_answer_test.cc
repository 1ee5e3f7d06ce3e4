#include "server/telemetry/http_answer.h"

#include <string>

#include "gtest/gtest.h"

namespace gemmd {
namespace {

HttpAnswer Answer(const std::string& method, const std::string& target) {
  return AnswerRequest({.method = method, .target = target},
                       {.metrics = [] { return std::string("x 1\n"); }});
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
  for (const char* target : {"/", "/metrics/", "/metricsx", "", "*", "http://", "http://x",
                             "http://metrics", "ftp://x/metrics", "http://x?a=/metrics"}) {
    const HttpAnswer answer = Answer("GET", target);
    EXPECT_EQ(answer.status, 404) << target;
    EXPECT_EQ(answer.body, "There are /, /status.json, /metrics, /readyz and /livez.\n");
  }
  const HttpAnswer answer = Answer("POST", "/metrics");
  EXPECT_EQ(answer.status, 405);
  EXPECT_EQ(answer.allow, "GET, HEAD");
}

TEST(HttpAnswerTest, AWholeAddressMayStandBeforeThePath) {
  EXPECT_EQ(Answer("GET", "http://x:9464/metrics?a=b").status, 200);
  EXPECT_EQ(Answer("HEAD", "HTTPS://[::1]/livez").status, 200);
}

TEST(HttpAnswerTest, ReadinessNeedsNoTokenAndSaysWhy) {
  absl::Status ready;
  const HttpPages pages = {
      .metrics = [] { return std::string(); },
      .may_scrape = [](auto) { return absl::UnauthenticatedError("no token"); },
      .ready = [&ready] { return ready; }};
  EXPECT_EQ(AnswerRequest({.method = "GET", .target = "/readyz"}, pages).status, 200);
  ready = absl::UnavailableError("draining");
  const HttpAnswer answer = AnswerRequest({.method = "GET", .target = "/readyz"}, pages);
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, "not ready: draining\n");
  EXPECT_EQ(AnswerRequest({.method = "GET", .target = "/livez"}, pages).status, 200);
}

TEST(HttpAnswerTest, MetricsAreRefusedAsTheirCheckSays) {
  absl::Status may;
  std::optional<std::string> shown;
  const HttpPages pages = {.metrics = [] { return std::string("x 1\n"); },
                           .may_scrape =
                               [&](std::optional<absl::string_view> authorization) {
                                 shown = std::string(authorization.value_or("none"));
                                 return may;
                               },
                           .ready = nullptr};
  const HttpRequest request = {
      .method = "GET", .target = "/metrics", .authorization = "Bearer secret"};
  EXPECT_EQ(AnswerRequest(request, pages).body, "x 1\n");
  EXPECT_EQ(shown, "Bearer secret");
  may = absl::UnauthenticatedError("who?");
  EXPECT_EQ(AnswerRequest(request, pages).status, 401);
  EXPECT_EQ(AnswerRequest(request, pages).authenticate, "Bearer");
  EXPECT_EQ(AnswerRequest(request, pages).body, "who?\n");
  may = absl::PermissionDeniedError("not you");
  EXPECT_EQ(AnswerRequest(request, pages).status, 403);
}

TEST(HttpAnswerTest, ThePageIsForAnyoneAndItsFiguresForThoseThatMayScrape) {
  absl::Status may = absl::UnauthenticatedError("who?");
  const HttpPages pages = {
      .metrics = [] { return std::string(); },
      .may_scrape = [&may](auto) { return may; },
      .page = [](absl::string_view path) -> std::optional<HttpAnswer> {
        if (path != "/") return std::nullopt;
        return HttpAnswer{.body = "page"};
      },
      .status = [](absl::string_view query) { return HttpAnswer{.body = std::string(query)}; }};
  const auto get = [&pages](absl::string_view target) {
    return AnswerRequest({.method = "GET", .target = target}, pages);
  };
  EXPECT_EQ(get("/").body, "page");
  EXPECT_EQ(get("/?x").body, "page");
  EXPECT_EQ(get("/other").status, 404);
  EXPECT_EQ(get("/status.json?part=jobs").status, 401);
  EXPECT_EQ(get("/status.json").authenticate, "Bearer");
  may = absl::PermissionDeniedError("not you");
  EXPECT_EQ(get("/status.json").status, 403);
  may = absl::OkStatus();
  EXPECT_EQ(get("/status.json?part=jobs").body, "part=jobs");
  EXPECT_EQ(get("/status.json").body, "");
}

}  // namespace
}  // namespace gemmd
