// Errors of calls to a server that says less than the contract asks for, and messages for one that
// takes less than a client would send.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gemmd/client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"

namespace gemmd::client {
namespace {

using ::testing::HasSubstr;

class SilentServerTest : public ::testing::Test {
 protected:
  static constexpr Shape kSquare{.rows = 300, .cols = 300};

  SilentServerTest() : data_(300 * 300, 1.0f), view_(ViewOf(kSquare, data_.data())) { Connect(); }
  void Connect() {
    auto connected = Client::Connect({.address = server_.address(),
                                      .channels = 2,
                                      .chunk_bytes = 64 << 10,
                                      .stripe_threshold_bytes = 128 << 10});
    EXPECT_TRUE(connected.ok()) << connected.status();
    client_ = *std::move(connected);
  }

  const std::vector<float> data_;
  const MatrixView view_;
  FakeServer server_;
  std::unique_ptr<Client> client_;
};

void ExpectInternal(const absl::Status& status, const char* sentence) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(sentence));
}

TEST_F(SilentServerTest, ADownloadWithoutAMessageIsTheServersError) {
  const auto info = client_->PutMatrix(view_, {.keep = {.name = "x"}});
  ASSERT_TRUE(info.ok()) << info.status();
  server_.faults().silent = true;
  ExpectInternal(client_->StatMatrix(Resident::ByName("x")).status(),
                 "the server said nothing of the matrix");
  ExpectInternal(client_->GetMatrix(Resident::Of(*info)).status(), "are missing");
}

TEST_F(SilentServerTest, SoIsTheDownloadOfWhatTheNameMeansNow) {
  ASSERT_TRUE(client_->PutMatrix(view_, {.keep = {.name = "x"}}).ok());
  HostMatrix memory = *HostMatrix::Allocate(kSquare);
  // The first stripe finds the name, the second one no matrix: the next call is for the whole.
  std::atomic<int> begun = 0;
  server_.faults().refuse = [&](const std::string& method) {
    if (method != "GetMatrix" || begun++ != 1) return grpc::Status::OK;
    server_.faults().silent = true;
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no matrix has id \"m1\"");
  };
  ExpectInternal(
      client_->GetMatrix(Resident::ByName("x"), {.into = memory.mutable_view()}).status(),
      "the server sent no matrix");
  EXPECT_EQ(begun, 3);
}

TEST_F(SilentServerTest, AResultThatIsKeptNobodySaysWhereIsTheServersError) {
  server_.faults().kept_unsaid = true;
  const Product product{.a = ViewOf({.rows = 300, .cols = 4}, data_.data()),
                        .b = ViewOf({.rows = 4, .cols = 300}, data_.data())};
  ExpectInternal(client_->Multiply(product, {.transport = Transport::kStriped}).status(),
                 "the server did not say where it kept the result");
  EXPECT_TRUE(server_.MatricesBecome(0));
}

TEST_F(SilentServerTest, ChunksFitTheMessagesThatTheServerTakes) {
  struct Case {
    uint64_t message_bytes;
    size_t chunk_bytes;
  };
  // Where hardly anything is left beside the other fields, chunks of 4096 bytes are tried.
  for (const Case& test : {Case{.message_bytes = 0, .chunk_bytes = 64 << 10},
                           Case{.message_bytes = 20'000, .chunk_bytes = 20'000 - 4096},
                           Case{.message_bytes = 8192, .chunk_bytes = 4096},
                           Case{.message_bytes = 100, .chunk_bytes = 4096}}) {
    FakeServer server;
    server.faults().describe = [&](::gemm::v1::GetServerInfoResponse* info) {
      info->mutable_limits()->set_max_message_bytes(test.message_bytes);
    };
    const auto client =
        Client::Connect({.address = server.address(), .channels = 1, .chunk_bytes = 64 << 10});
    ASSERT_TRUE(client.ok()) << client.status();
    ASSERT_TRUE((*client)->PutMatrix(view_).ok());
    EXPECT_EQ(server.largest_chunk(), test.chunk_bytes) << test.message_bytes;
  }
}

}  // namespace
}  // namespace gemmd::client
