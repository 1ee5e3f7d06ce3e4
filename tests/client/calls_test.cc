// Every call of the client against a service that keeps the contract.

#include <atomic>
#include <future>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "gemmd/client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"

namespace gemmd::client {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// rows x cols with small integers, which every type here holds and sums exactly.
HostMatrix Filled(int64_t rows, int64_t cols, DataType dtype = kF32, Layout layout = kRowMajor) {
  HostMatrix matrix =
      *HostMatrix::Allocate({.rows = rows, .cols = cols, .dtype = dtype, .layout = layout});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      matrix.Set(i, j, static_cast<double>((i * 7 + j * 3 + rows) % 11 - 5));
    }
  }
  return matrix;
}

std::vector<double> ProductOf(const HostMatrix& a, const HostMatrix& b) {
  std::vector<double> values;
  for (int64_t i = 0; i < a.shape().rows; ++i) {
    for (int64_t j = 0; j < b.shape().cols; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < a.shape().cols; ++l) sum += a.Get(i, l) * b.Get(l, j);
      values.push_back(sum);
    }
  }
  return values;
}

class CallsTest : public ::testing::Test {
 protected:
  CallsTest() {
    auto connected = Client::Connect({.address = server_.address(),
                                      .channels = 3,
                                      .chunk_bytes = 4096,
                                      .unary_threshold_bytes = 8 << 10,
                                      .stripe_threshold_bytes = 64 << 10});
    EXPECT_TRUE(connected.ok()) << connected.status();
    client_ = *std::move(connected);
  }

  FakeServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(CallsTest, ConnectLearnsWhoTheServerIs) {
  EXPECT_EQ(client_->server().version(), "fake");
  EXPECT_EQ(client_->options().channels, 3);
  EXPECT_EQ(client_->GetServerInfo()->devices(0).name(), "host:0");
}

TEST_F(CallsTest, SmallProductIsOneMessage) {
  const HostMatrix a = Filled(3, 5);
  const HostMatrix b = Filled(5, 4, kF32, kColumnMajor);
  const auto result = client_->Multiply({.a = a.view(), .b = b.view()});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->transport, Transport::kUnary);
  EXPECT_EQ(result->matrix.ToDoubles(), ProductOf(a, b));
  EXPECT_EQ(result->report.kernel(), "fake");
  EXPECT_EQ(result->bytes_sent, 4u * (15 + 20));
  EXPECT_EQ(result->bytes_received, 4u * 12);
  EXPECT_GT(result->elapsed, absl::ZeroDuration());
  EXPECT_EQ(server_.calls("MultiplyUnary"), 1);
}

TEST_F(CallsTest, LargerProductIsOneStream) {
  const HostMatrix a = Filled(70, 81, kF16);
  const HostMatrix b = Filled(81, 60, kF16);
  const auto result =
      client_->Multiply({.a = a.view(), .b = b.view(), .output_layout = kColumnMajor});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->transport, Transport::kStream);
  EXPECT_EQ(result->matrix.ToDoubles(), ProductOf(a, b));
  EXPECT_EQ(result->matrix.shape().layout, kColumnMajor);
  EXPECT_EQ(server_.calls("Multiply"), 1);
}

TEST_F(CallsTest, LargeProductIsStripedAndLeavesNothing) {
  const HostMatrix a = Filled(200, 151);
  const HostMatrix b = Filled(151, 190);
  const auto result = client_->Multiply({.a = a.view(), .b = b.view()});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->transport, Transport::kStriped);
  EXPECT_EQ(result->matrix.ToDoubles(), ProductOf(a, b));
  EXPECT_FALSE(result->kept.has_value());
  EXPECT_EQ(server_.calls("PutMatrix"), 6);
  EXPECT_EQ(server_.calls("GetMatrix"), 3);
  EXPECT_EQ(server_.matrices(), 0u);
}

TEST_F(CallsTest, StripedOperandGoesWithAPayloadOne) {
  const HostMatrix a = Filled(400, 101);
  const HostMatrix b = Filled(101, 2);
  const auto result = client_->Multiply({.a = a.view(), .b = b.view()});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->transport, Transport::kStriped);
  EXPECT_EQ(result->matrix.ToDoubles(), ProductOf(a, b));
  EXPECT_EQ(server_.matrices(), 0u);
}

TEST_F(CallsTest, EveryTransportGivesTheSame) {
  const HostMatrix a = Filled(100, 50);
  const HostMatrix b = Filled(50, 90);
  for (const Transport transport : {Transport::kUnary, Transport::kStream, Transport::kStriped}) {
    const auto result = client_->Multiply({.a = a.view(), .b = b.view()}, {.transport = transport});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->transport, transport);
    EXPECT_EQ(result->matrix.ToDoubles(), ProductOf(a, b));
  }
}

TEST_F(CallsTest, ResultGoesIntoTheCallersMemory) {
  const HostMatrix a = Filled(100, 50);
  const HostMatrix b = Filled(50, 90);
  for (const Transport transport : {Transport::kUnary, Transport::kStream, Transport::kStriped}) {
    std::vector<float> memory(100 * 90 + 1, 77);
    const MutableMatrixView into = MutableViewOf(Shape{.rows = 100, .cols = 90}, memory.data());
    const auto result = client_->Multiply({.a = a.view(), .b = b.view(), .result = {.into = into}},
                                          {.transport = transport});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->matrix.empty());
    const std::vector<double> expected = ProductOf(a, b);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory.begin()));
    EXPECT_EQ(memory.back(), 77);
  }
}

TEST_F(CallsTest, OperandsAreBorrowedFromTheCallersArrays) {
  const std::vector<float> a(300 * 100, 2);
  const std::vector<float> b(100 * 200, 3);
  const auto result = client_->Multiply({.a = ViewOf({.rows = 300, .cols = 100}, a.data()),
                                         .b = ViewOf({.rows = 100, .cols = 200}, b.data())});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->matrix.Get(299, 199), 600);
}

TEST_F(CallsTest, ResultOfUnknownShapeIsReceivedWhole) {
  const HostMatrix a = Filled(200, 151);
  const auto info = client_->PutMatrix(a.view(), {.keep = {.name = "a"}});
  ASSERT_TRUE(info.ok()) << info.status();
  const HostMatrix b = Filled(151, 190);
  const auto result = client_->Multiply({.a = Resident::ByName("a"), .b = b.view()},
                                        {.transport = Transport::kStream});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->matrix.ToDoubles(), ProductOf(a, b));
}

TEST_F(CallsTest, ResultIsKeptWhereAsked) {
  const HostMatrix a = Filled(2, 2);
  const auto result = client_->Multiply(
      {.a = a.view(), .b = a.view(), .result = {.fetch = false, .keep = Keep{.name = "d"}}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->matrix.empty());
  ASSERT_TRUE(result->kept.has_value());
  EXPECT_EQ(result->bytes_received, 0u);
  const auto fetched = client_->GetMatrix(Resident::Of(*result->kept));
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->matrix.ToDoubles(), ProductOf(a, a));
}

TEST_F(CallsTest, CallbackAndFutureStyles) {
  const HostMatrix a = Filled(120, 130);
  const HostMatrix b = Filled(130, 110);
  std::promise<absl::StatusOr<ProductResult>> called;
  const Canceller canceller = client_->MultiplyAsync(
      {.a = a.view(), .b = b.view()}, {},
      [&](absl::StatusOr<ProductResult> result) { called.set_value(std::move(result)); });
  auto future = client_->MultiplyFuture({.a = a.view(), .b = b.view()});
  const auto from_callback = called.get_future().get();
  const auto from_future = future.get();
  ASSERT_TRUE(from_callback.ok()) << from_callback.status();
  ASSERT_TRUE(from_future.ok()) << from_future.status();
  EXPECT_EQ(from_callback->matrix.ToDoubles(), ProductOf(a, b));
  EXPECT_EQ(from_future->matrix.ToDoubles(), ProductOf(a, b));
  EXPECT_FALSE(canceller.cancelled());
}

TEST_F(CallsTest, HundredConcurrentCalls) {
  const HostMatrix small = Filled(4, 4);
  const HostMatrix middle = Filled(60, 60);
  const HostMatrix large = Filled(140, 140);
  std::vector<const HostMatrix*> operands;
  std::vector<std::future<absl::StatusOr<ProductResult>>> futures;
  for (int i = 0; i < 100; ++i) {
    operands.push_back(i % 10 == 0 ? &large : i % 2 == 0 ? &middle : &small);
    futures.push_back(
        client_->MultiplyFuture({.a = operands.back()->view(), .b = operands.back()->view()}));
  }
  for (int i = 0; i < 100; ++i) {
    const auto result = futures[i].get();
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->matrix.ToDoubles(), ProductOf(*operands[i], *operands[i])) << i;
  }
  EXPECT_EQ(server_.matrices(), 0u);
}

TEST_F(CallsTest, PutAndGetAreStripedOrNotAndEqual) {
  for (const int64_t rows : {1, 40, 400}) {
    const HostMatrix matrix = Filled(rows, 101, kBF16, kColumnMajor);
    const auto info = client_->PutMatrix(matrix.view(), {.keep = {.name = "x"}});
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(FromProto(info->shape()), matrix.shape());
    const auto fetched = client_->GetMatrix({.name = "x", .release = true});
    ASSERT_TRUE(fetched.ok()) << fetched.status();
    EXPECT_EQ(fetched->matrix.ToDoubles(), matrix.ToDoubles());
    EXPECT_EQ(fetched->info.id(), info->id());
    EXPECT_EQ(server_.matrices(), 0u);
  }
}

TEST_F(CallsTest, GetGoesIntoTheCallersMemory) {
  const HostMatrix matrix = Filled(400, 101);
  const auto info = client_->PutMatrix(matrix.view());
  ASSERT_TRUE(info.ok()) << info.status();
  HostMatrix memory = *HostMatrix::Allocate(matrix.shape());
  const auto fetched =
      client_->GetMatrix(Resident::ById(info->id()), {.into = memory.mutable_view()});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_TRUE(fetched->matrix.empty());
  EXPECT_EQ(memory.ToDoubles(), matrix.ToDoubles());
  HostMatrix wrong = *HostMatrix::Allocate({.rows = 3, .cols = 3});
  const auto refused =
      client_->GetMatrix(Resident::ById(info->id()), {.into = wrong.mutable_view()});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("the matrix is 400x101"));
}

TEST_F(CallsTest, MatricesAreGeneratedListedToldOfAndDeleted) {
  for (const char* name : {"p/1", "p/2", "p/3", "p/4", "q"}) {
    ASSERT_TRUE(
        client_
            ->PutGenerated({.shape = {.rows = 3, .cols = 2}, .seed = 7}, {.keep = {.name = name}})
            .ok());
  }
  EXPECT_THAT(*client_->ListMatrices(), SizeIs(5));
  EXPECT_THAT(*client_->ListMatrices("p/"), SizeIs(4));
  const auto info = client_->StatMatrix(Resident::ByName("p/3"));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->shape().rows(), 3);
  ASSERT_TRUE(client_->DeleteMatrix(Resident::ById(info->id())).ok());
  EXPECT_TRUE(absl::IsNotFound(client_->StatMatrix(Resident::ByName("p/3")).status()));
  EXPECT_THAT(*client_->ListMatrices("p/"), SizeIs(3));
  EXPECT_FALSE(client_->StatMatrix({}).ok());
  EXPECT_FALSE(client_->GetMatrix({.id = "a", .name = "b"}).ok());
}

TEST_F(CallsTest, WhatCannotBeRightIsRefusedBeforeAnythingIsSent) {
  const HostMatrix matrix = Filled(2, 3);
  const Shape none{.rows = 2, .cols = 0};
  HostMatrix memory = *HostMatrix::Allocate(matrix.shape());
  MutableMatrixView empty = memory.mutable_view();
  empty.shape = none;
  const std::pair<absl::Status, const char*> refused[] = {
      {client_->PutMatrix({.shape = matrix.shape()}).status(), "matrix.data is null"},
      {client_->PutMatrix({.shape = none, .data = matrix.data()}).status(),
       "matrix.shape.cols is 0"},
      {client_->PutGenerated({.shape = none}).status(), "matrix.shape.cols is 0"},
      {client_->GetMatrix(Resident::ById("m1"), {.into = empty}).status(),
       "get.into.shape.cols is 0"},
      {client_->StatMatrix({.id = "a", .name = "b"}).status(), "matrix.id is 'a'"},
      {client_->DeleteMatrix({}).status(), "exactly one of them must be set"},
      {client_->Multiply({.a = matrix.view(), .b = matrix.view()}).status(), "op(a) has 3 columns"},
      {client_->MultiplyFuture({.a = matrix.view(), .b = matrix.view()}).get().status(),
       "op(a) has 3 columns"}};
  for (const auto& [status, sentence] : refused) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(sentence));
  }
  for (const char* method :
       {"PutMatrix", "GetMatrix", "DeleteMatrix", "Multiply", "MultiplyUnary"}) {
    EXPECT_EQ(server_.calls(method), 0) << method;
  }
}

TEST_F(CallsTest, ProgressGrowsToTheTotal) {
  const HostMatrix a = Filled(200, 150);
  std::mutex mutex;
  uint64_t done = 0, total = 0;
  const auto result = client_->Multiply({.a = a.view(), .b = a.view(), .transpose_b = true},
                                        {.progress = [&](uint64_t now_done, uint64_t now_total) {
                                          std::lock_guard<std::mutex> lock(mutex);
                                          EXPECT_GE(now_done, done);
                                          EXPECT_LE(now_done, now_total);
                                          done = now_done;
                                          total = now_total;
                                        }});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(total, 4u * (2 * 200 * 150 + 200 * 200));
  EXPECT_EQ(done, total);
}

}  // namespace
}  // namespace gemmd::client
