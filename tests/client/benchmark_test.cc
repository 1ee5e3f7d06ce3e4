// Benchmarks through the client library, against the real server.
#include <string>
#include <vector>

#include "gemmd/client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/server.h"

namespace gemmd::client {
namespace {

using ::testing::HasSubstr;

class BenchmarkTest : public ::testing::Test {
 protected:
  BenchmarkTest() {
    ServerOptions options;
    options.engine.devices = "host";
    options.engine.device_memory_bytes = 32 * gemmd::kMiB;
    options.engine.max_queue_wait = absl::Hours(1);  // no test depends on speed
    options.address = "127.0.0.1:0";
    options.metrics_address = "";
    auto started = Server::Start(options);
    EXPECT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    auto connected = Client::Connect({.address = server_->address()});
    EXPECT_TRUE(connected.ok()) << connected.status();
    client_ = *std::move(connected);
    v1_shape_ = request_.add_shapes();
    v1_shape_->set_m(24);
    v1_shape_->set_n(16);
    v1_shape_->set_k(8);
    request_.add_families("host");
    request_.set_iterations(2);
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
  BenchmarkRequest request_;
  ::gemm::v1::ProductSize* v1_shape_ = nullptr;
};

TEST_F(BenchmarkTest, MessagesComeInOrderAndTheLastIsTheAnswer) {
  std::vector<BenchmarkResponse> messages;
  const auto end = client_->Benchmark(
      request_, [&](const BenchmarkResponse& message) { messages.push_back(message); });
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->concurrent_jobs(), 0);
  ASSERT_GE(messages.size(), 2u);
  EXPECT_TRUE(messages.front().has_header());
  ASSERT_TRUE(messages.back().has_rows());
  ASSERT_EQ(messages.back().rows().rows_size(), 2);
  for (const auto& row : messages.back().rows().rows()) {
    ASSERT_TRUE(row.has_measurement()) << row.note();
    EXPECT_LE(row.measurement().max_error_over_bound(), 1);
  }
}

TEST_F(BenchmarkTest, ACancellerEndsIt) {
  v1_shape_->set_m(200);
  v1_shape_->set_n(200);
  v1_shape_->set_k(200);
  request_.set_iterations(100'000);
  request_.set_cutoff(1e9);
  const Canceller canceller;
  const auto end = client_->Benchmark(
      request_, [&](const BenchmarkResponse&) { canceller.Cancel(); }, {.canceller = canceller});
  EXPECT_EQ(end.status(), absl::CancelledError("Benchmark was cancelled by the caller"));
}

TEST_F(BenchmarkTest, ATimeoutEndsIt) {
  v1_shape_->set_m(200);
  v1_shape_->set_n(200);
  v1_shape_->set_k(200);
  request_.set_iterations(100'000);
  request_.set_cutoff(1e9);
  const auto end = client_->Benchmark(request_, [](const BenchmarkResponse&) {},
                                      {.timeout = absl::Milliseconds(300)});
  EXPECT_EQ(end.status().code(), absl::StatusCode::kDeadlineExceeded) << end.status();
}

TEST_F(BenchmarkTest, ErrorsOfTheServerComeThrough) {
  request_.add_kernels("host_openblass");
  int messages = 0;
  const auto end = client_->Benchmark(request_, [&](const BenchmarkResponse&) { ++messages; });
  EXPECT_EQ(end.status().code(), absl::StatusCode::kNotFound) << end.status();
  EXPECT_THAT(std::string(end.status().message()), HasSubstr("nearest are host_openblas"));
  EXPECT_EQ(messages, 0);
}

}  // namespace
}  // namespace gemmd::client
