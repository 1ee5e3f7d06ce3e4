// Which of the server's answers to an upload the client believes.
#include <memory>
#include <utility>
#include <vector>

#include "gemmd/client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"

namespace gemmd::client {
namespace {

using ::testing::HasSubstr;

class UploadAnswersTest : public ::testing::Test {
 protected:
  static constexpr int64_t kSide = 300;

  UploadAnswersTest() : data_(kSide * kSide, 1.0f) {
    auto connected = Client::Connect({.address = server_.address(),
                                      .channels = 3,
                                      .chunk_bytes = 64 << 10,
                                      .stripe_threshold_bytes = 128 << 10});
    EXPECT_TRUE(connected.ok()) << connected.status();
    client_ = *std::move(connected);
  }

  std::vector<float> data_;
  FakeServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(UploadAnswersTest, TheCompleteStripeTellsTheVersionAlsoWhereItDoesNotComeLast) {
  server_.faults().complete_first = true;
  const MatrixView view = ViewOf({.rows = kSide, .cols = kSide}, data_.data());
  const auto info = client_->PutMatrix(view, {.keep = {.name = "w"}});
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_GT(server_.calls("PutMatrix"), 1);
  EXPECT_GT(info->version(), 0u);
}

TEST_F(UploadAnswersTest, AMatrixThatWasDroppedBeforeItWasCompleteIsAborted) {
  server_.faults().dropped = true;
  const MatrixView view = ViewOf({.rows = 30, .cols = 30}, data_.data());
  const absl::Status status = client_->PutMatrix(view, {.keep = {.name = "w"}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("deleted or replaced"));
}

}  // namespace
}  // namespace gemmd::client
