#include "server/telemetry/http_endpoint.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/telemetry/metrics.h"
#include "tests/net/loopback.h"
#include "tests/telemetry/fake_catalogue.h"
#include "tests/telemetry/scrape.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kFlag[] = "--metrics-address";

HttpPages PagesOf(const Metrics& metrics) {
  return {.metrics = [&metrics] { return metrics.Scrape(); }};
}

// A connection to a port of this machine.
class LoopbackSocket {
 public:
  LoopbackSocket() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {}
  ~LoopbackSocket() { close(fd_); }

  bool Connect(int port) {
    const sockaddr_in to = Address(port);
    return connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
  }

  // The whole answer to a GET, header and body; "" where nothing listens.
  std::string Get(int port, const std::string& path) {
    if (!Connect(port)) return "";
    const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
    EXPECT_EQ(send(fd_, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string answer;
    char buffer[4096];
    for (ssize_t n; (n = recv(fd_, buffer, sizeof(buffer), 0)) > 0;) answer.append(buffer, n);
    return answer;
  }

  // Takes a free port and returns it.
  int Listen() {
    sockaddr_in at = Address(0);
    socklen_t length = sizeof(at);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&at), length), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &length), 0);
    return ntohs(at.sin_port);
  }

 private:
  static sockaddr_in Address(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    return address;
  }

  const int fd_;
};

std::string Get(int port, const std::string& path) { return LoopbackSocket().Get(port, path); }

TEST(HttpEndpointTest, ServesTheMetricsOnAPortOfItsOwn) {
  Metrics metrics(FakeMetricsOptions());
  auto endpoint = HttpEndpoint::Start(kFlag, "127.0.0.1:0", PagesOf(metrics));
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_GT((*endpoint)->port(), 0);
  EXPECT_EQ((*endpoint)->address(), absl::StrCat("127.0.0.1:", (*endpoint)->port()));

  const std::string answer = Get((*endpoint)->port(), "/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  const size_t body = answer.find("\r\n\r\n");
  ASSERT_NE(body, std::string::npos);
  const ParsedScrape scrape = ParseScrape(answer.substr(body + 4));
  EXPECT_EQ(scrape.at(R"(gemmd_build_info{commit="abc123",cuda="none",version="1.2.3"})"), 1);
  EXPECT_GT(scrape.at("process_resident_memory_bytes"), 0);
}

TEST(HttpEndpointTest, AnswersOtherPathsWithNotFound) {
  Metrics metrics(FakeMetricsOptions());
  auto endpoint = HttpEndpoint::Start(kFlag, "127.0.0.1:0", PagesOf(metrics));
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_THAT(Get((*endpoint)->port(), "/etc/passwd"), StartsWith("HTTP/1.1 404"));
}

// The first line of what `bytes` are answered with.
std::string StatusLine(int port, const std::string& bytes) {
  const UniqueFd connection = ConnectTo(port);
  SendAll(connection, bytes);
  const std::string answer = ReceiveAll(connection);
  return answer.substr(0, answer.find("\r\n"));
}

TEST(HttpEndpointTest, AnswersHeadWithTheLengthAndNoBody) {
  Metrics metrics(FakeMetricsOptions());
  auto endpoint = HttpEndpoint::Start(kFlag, "127.0.0.1:0", PagesOf(metrics));
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const UniqueFd connection = ConnectTo((*endpoint)->port());
  SendAll(connection, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string answer = ReceiveAll(connection);
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("\r\nContent-Length: "),
                            HasSubstr("\r\nConnection: close\r\n"), EndsWith("\r\n\r\n")));
  EXPECT_THAT(answer, Not(HasSubstr("Content-Length: 0")));
}

TEST(HttpEndpointTest, AScrapeThatIsRefusedHearsWhatToShow) {
  auto endpoint = HttpEndpoint::Start(
      kFlag, "127.0.0.1:0",
      {.metrics = [] { return std::string("x 1\n"); },
       .may_scrape = [](auto) { return absl::UnauthenticatedError("no token"); },
       .ready = nullptr});
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_THAT(Get((*endpoint)->port(), "/metrics"),
              AllOf(StartsWith("HTTP/1.1 401 Unauthorized\r\n"),
                    HasSubstr("\r\nWWW-Authenticate: Bearer\r\n"), EndsWith("no token\n")));
}

TEST(HttpEndpointTest, OtherRequestsAreErrorsThatSaySo) {
  Metrics metrics(FakeMetricsOptions());
  auto endpoint = HttpEndpoint::Start(kFlag, "127.0.0.1:0", PagesOf(metrics));
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const int port = (*endpoint)->port();
  const std::string end = " HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_EQ(StatusLine(port, "GET /metrics/" + end), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(StatusLine(port, "POST /metrics" + end), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_EQ(StatusLine(port, "GET  /metrics" + end), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(StatusLine(port, "GET /metrics\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(StatusLine(port, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(StatusLine(port, "\x16\x03\x01\r\n\r\n"), "HTTP/1.1 400 Bad Request");
}

TEST(HttpEndpointTest, AHeadThatIsTooLongIsToldSo) {
  Metrics metrics(FakeMetricsOptions());
  auto endpoint = HttpEndpoint::Start(kFlag, "127.0.0.1:0", PagesOf(metrics));
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const int port = (*endpoint)->port();
  const std::string begin = "GET /metrics HTTP/1.1\r\nHost: x\r\n";
  const std::string too_large = "HTTP/1.1 431 Request Header Fields Too Large";
  EXPECT_EQ(StatusLine(port, begin + "Cookie: " + std::string(20'000, 'x') + "\r\n\r\n"),
            too_large);
  // Without an end, in one line or many.
  EXPECT_EQ(StatusLine(port, begin + "Cookie: " + std::string(100'000, 'x')), too_large);
  std::string lines = begin;
  for (int i = 0; i < 2000; ++i) lines += "A" + std::to_string(i) + ": b\r\n";
  EXPECT_EQ(StatusLine(port, lines + "\r\n"), too_large);
}

TEST(HttpEndpointTest, ABodyIsNotReadAndHarmsNothing) {
  Metrics metrics(FakeMetricsOptions());
  auto endpoint = HttpEndpoint::Start(kFlag, "127.0.0.1:0", PagesOf(metrics));
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const int port = (*endpoint)->port();
  EXPECT_EQ(
      StatusLine(port, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" +
                           std::string(1'000'000, 'x')),
      "HTTP/1.1 405 Method Not Allowed");
}

TEST(HttpEndpointTest, IdleConnectionsDelayNoScrape) {
  Metrics metrics(FakeMetricsOptions());
  auto endpoint = HttpEndpoint::Start(kFlag, "127.0.0.1:0", PagesOf(metrics));
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const int port = (*endpoint)->port();
  // Far more than are served at the same time: some silent, some half-way
  // through a request, some that read no answer.
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 200; ++i) {
    idle.push_back(ConnectTo(port));
    if (i % 3 == 1) SendAll(idle.back(), "GET /metr");
    if (i % 3 == 2) SendAll(idle.back(), "GET /metrics HTTP/1.1\r\n\r\n");
  }
  // One after the other they would take as long as their time-outs together.
  const absl::Time start = absl::Now();
  EXPECT_THAT(Get(port, "/metrics"), StartsWith("HTTP/1.1 200"));
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
  const ConnectionStats stats = (*endpoint)->Stats();
  EXPECT_EQ(stats.accepted, 201);
  EXPECT_GE(stats.refused, 1);
  EXPECT_LE(stats.open, stats.limit);
  // And they end by themselves.
  for (const UniqueFd& connection : idle) EXPECT_TRUE(ClosedByPeer(connection));
}

TEST(HttpEndpointTest, StopsListeningWhenItGoes) {
  Metrics metrics(FakeMetricsOptions());
  int port = 0;
  {
    auto endpoint = HttpEndpoint::Start(kFlag, "127.0.0.1:0", PagesOf(metrics));
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    port = (*endpoint)->port();
  }
  EXPECT_EQ(Get(port, "/metrics"), "");
}

TEST(HttpEndpointTest, AClientThatSaysNothingHoldsUpNeitherOthersNorTheEnd) {
  Metrics metrics(FakeMetricsOptions());
  auto endpoint = HttpEndpoint::Start(kFlag, "127.0.0.1:0", PagesOf(metrics));
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  LoopbackSocket silent;
  ASSERT_TRUE(silent.Connect((*endpoint)->port()));
  EXPECT_THAT(Get((*endpoint)->port(), "/metrics"), StartsWith("HTTP/1.1 200"));

  // One that waited would take the two seconds of a connection each time; a busy machine does not.
  absl::Duration shortest = absl::InfiniteDuration();
  for (int i = 0; i < 5 && shortest > absl::Seconds(1); ++i) {
    if (i > 0) endpoint = HttpEndpoint::Start(kFlag, "127.0.0.1:0", PagesOf(metrics));
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    LoopbackSocket also_silent;
    ASSERT_TRUE(also_silent.Connect((*endpoint)->port()));
    const absl::Time start = absl::Now();
    endpoint->reset();
    shortest = std::min(shortest, absl::Now() - start);
  }
  EXPECT_LT(shortest, absl::Seconds(1));
}

TEST(HttpEndpointTest, ServesIPv6) {
  Metrics metrics(FakeMetricsOptions());
  auto endpoint = HttpEndpoint::Start(kFlag, "[::1]:0", PagesOf(metrics));
  if (!endpoint.ok()) GTEST_SKIP() << "no IPv6 here: " << endpoint.status();
  EXPECT_EQ((*endpoint)->address(), absl::StrCat("[::1]:", (*endpoint)->port()));
  EXPECT_GT((*endpoint)->port(), 0);
}

TEST(HttpEndpointTest, ATakenPortIsAnErrorThatNamesTheFlagAndTheAddress) {
  Metrics metrics(FakeMetricsOptions());
  LoopbackSocket other;
  const std::string address = absl::StrCat("127.0.0.1:", other.Listen());
  const absl::Status status = HttpEndpoint::Start(kFlag, address, PagesOf(metrics)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            absl::StrCat("--metrics-address=", address, ": cannot listen: Address already in use"));
}

TEST(HttpEndpointTest, AnAddressOfAnotherMachineIsAnError) {
  Metrics metrics(FakeMetricsOptions());
  const absl::Status status = HttpEndpoint::Start(kFlag, "192.0.2.1:0", PagesOf(metrics)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), AllOf(StartsWith("--metrics-address=192.0.2.1:0: "),
                                                   HasSubstr("Cannot assign requested address")));
}

class BadAddressTest : public ::testing::TestWithParam<const char*> {};

TEST_P(BadAddressTest, IsAnErrorThatSaysWhatIsWanted) {
  Metrics metrics(FakeMetricsOptions());
  const absl::Status status = HttpEndpoint::Start(kFlag, GetParam(), PagesOf(metrics)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith(absl::StrCat("--metrics-address=", GetParam(), ": ")),
                    HasSubstr("host:port with a port from 0 to 65535")));
}

INSTANTIATE_TEST_SUITE_P(Addresses, BadAddressTest,
                         ::testing::Values("", "9464", ":9464", "localhost", "localhost:",
                                           "localhost:http", "127.0.0.1:65536", "127.0.0.1:-1",
                                           "::1:9464", "127.0.0.1:80,127.0.0.1:81", "[::1:80"));

}  // namespace
}  // namespace gemmd
