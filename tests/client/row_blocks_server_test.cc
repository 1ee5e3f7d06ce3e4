// Products in blocks of rows against the real server, on host devices.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gemmd/client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/server_fixture.h"

namespace gemmd::client {
namespace {

using ::testing::HasSubstr;

constexpr char kPromises[] = "host_reference";  // never the server's choice

// Its sums are rounded: their bits depend on the order of the terms.
HostMatrix Drawn(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> values(-1, 1);
  HostMatrix matrix = *HostMatrix::Allocate(shape);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    StoreElement(matrix.data(), i, shape.dtype, values(random));
  }
  return matrix;
}

class RowBlocksServerTest : public ServerTest {
 protected:
  explicit RowBlocksServerTest(const std::string& devices = "host") : ServerTest(devices) {}

  // The product in blocks of rows has the bits of the whole one.
  void ExpectBitsOfTheWhole(Product product) {
    product.kernel.name = kPromises;
    const auto whole = client_->Multiply(product, {.transport = Transport::kStream});
    ASSERT_TRUE(whole.ok()) << whole.status();
    const auto blocks = client_->Multiply(product, {.transport = Transport::kRowBlocks});
    ASSERT_TRUE(blocks.ok()) << blocks.status();
    EXPECT_EQ(blocks->transport, Transport::kRowBlocks);
    ASSERT_EQ(blocks->matrix.shape(), whole->matrix.shape());
    EXPECT_EQ(std::memcmp(blocks->matrix.data(), whole->matrix.data(), whole->matrix.bytes()), 0);
    EXPECT_EQ(blocks->report.kernel(), kPromises);
    EXPECT_EQ(blocks->report.m(), whole->report.m());
    EXPECT_EQ(blocks->report.result_shape().rows(), whole->report.m());
    EXPECT_THAT(blocks->report.reason(),
                HasSubstr(std::to_string(whole->report.m()) + " rows of the product"));
    EXPECT_EQ(blocks->bytes_sent, whole->bytes_sent);
    EXPECT_EQ(blocks->bytes_received, whole->bytes_received);
    ExpectNothingLeft();
  }
};

class RowBlocksOnTwoDevicesTest : public RowBlocksServerTest {
 protected:
  RowBlocksOnTwoDevicesTest() : RowBlocksServerTest("host:2") {}
};

TEST_F(RowBlocksServerTest, BitsAreThoseOfTheWholeInEveryType) {
  const struct {
    DataType a, d;
  } kTypes[] = {{kF64, kF64}, {kF32, kF32},   {kF16, kF16},
                {kF16, kF32}, {kBF16, kBF16}, {kF8E4M3, kF16}};
  for (const auto& types : kTypes) {
    SCOPED_TRACE(std::string(Name(types.a)));
    const HostMatrix a = Drawn({.rows = 601, .cols = 77, .dtype = types.a}, 1);
    const HostMatrix b = Drawn({.rows = 77, .cols = 53, .dtype = types.a}, 2);
    ExpectBitsOfTheWhole({.a = a.view(), .b = b.view(), .output_dtype = types.d});
  }
}

TEST_F(RowBlocksServerTest, TheRowsOfCGoWithThoseOfA) {
  for (const int64_t rows : {129, 512, 1001}) {
    const HostMatrix a = Drawn({.rows = rows, .cols = 61}, 1);
    const HostMatrix b = Drawn({.rows = 47, .cols = 61}, 2);
    const HostMatrix c = Drawn({.rows = rows, .cols = 47}, 3);
    const HostMatrix bias = Drawn({.rows = 1, .cols = 47}, 4);
    ExpectBitsOfTheWhole({.a = a.view(),
                          .b = b.view(),
                          .c = c.view(),
                          .bias = bias.view(),
                          .transpose_b = true,
                          .alpha = 1.25,
                          .beta = -0.5,
                          .activation = kGelu});
  }
}

TEST_F(RowBlocksServerTest, BMayBeInColumnsOrResidentAndTheBiasGenerated) {
  const HostMatrix a = Drawn({.rows = 300, .cols = 61}, 1);
  const HostMatrix columns = Drawn({.rows = 61, .cols = 47, .layout = kColumnMajor}, 2);
  const Operand bias = Generated{.shape = {.rows = 1, .cols = 47}, .seed = 7};
  ExpectBitsOfTheWhole({.a = a.view(), .b = columns.view(), .bias = bias});
  const auto info = client_->PutMatrix(columns.view(), {.keep = {.name = "b"}});
  ASSERT_TRUE(info.ok()) << info.status();
  for (const Resident& b : {Resident::ById(info->id()), Resident::ByName("b")}) {
    Resident known = b;
    known.shape = columns.shape();
    if (known.id.empty()) known.version = info->version();
    const Product product{.a = a.view(), .b = known, .bias = bias, .kernel = {.name = kPromises}};
    const auto whole = client_->Multiply(product, {.transport = Transport::kStream});
    const auto blocks = client_->Multiply(product, {.transport = Transport::kRowBlocks});
    ASSERT_TRUE(whole.ok() && blocks.ok()) << whole.status() << blocks.status();
    EXPECT_EQ(blocks->transport, Transport::kRowBlocks);
    EXPECT_EQ(std::memcmp(blocks->matrix.data(), whole->matrix.data(), whole->matrix.bytes()), 0);
  }
  EXPECT_TRUE(client_->DeleteMatrix(Resident::ById(info->id())).ok()) << "it is still there";
  ExpectNothingLeft();
}

TEST_F(RowBlocksServerTest, ALargeProductGoesSoByItselfWhereItsKernelPromises) {
  const HostMatrix a = Drawn({.rows = 700, .cols = 200}, 1);
  const HostMatrix b = Drawn({.rows = 200, .cols = 150}, 2);
  Product product{.a = a.view(), .b = b.view(), .kernel = {.name = kPromises}};
  const auto promised = client_->Multiply(product);
  ASSERT_TRUE(promised.ok()) << promised.status();
  EXPECT_EQ(promised->transport, Transport::kRowBlocks);
  product.kernel.name = "";
  const auto chosen = client_->Multiply(product);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->transport, Transport::kStriped);
  EXPECT_EQ(chosen->report.kernel(), "host_openblas");
  for (int64_t i = 0; i < 700; i += 13) {
    EXPECT_NEAR(promised->matrix.Get(i, i % 150), chosen->matrix.Get(i, i % 150), 1e-3);
  }
  ExpectNothingLeft();
}

TEST_F(RowBlocksServerTest, NothingIsWrittenBesideTheCallersMemory) {
  constexpr int64_t kRows = 260, kColumns = 31;
  const HostMatrix a = Drawn({.rows = kRows, .cols = 40}, 1);
  const HostMatrix b = Drawn({.rows = 40, .cols = kColumns}, 2);
  std::vector<float> memory(kRows * kColumns + 2, -77.0f);
  Product product{.a = a.view(), .b = b.view(), .kernel = {.name = kPromises}};
  product.result.into = MutableViewOf({.rows = kRows, .cols = kColumns}, memory.data() + 1);
  uint64_t done = 0, total = 0;
  const auto result = client_->Multiply(product, {.progress =
                                                      [&](uint64_t now, uint64_t all) {
                                                        done = now;
                                                        total = all;
                                                      },
                                                  .transport = Transport::kRowBlocks});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(memory.front(), -77);
  EXPECT_EQ(memory.back(), -77);
  EXPECT_EQ(std::count(memory.begin(), memory.end(), -77.0f), 2);
  EXPECT_EQ(done, total);
  EXPECT_EQ(total, result->bytes_sent + result->bytes_received);
}

TEST_F(RowBlocksServerTest, IsCancelledAtAnyTimeAndLeavesNothing) {
  const HostMatrix a = Drawn({.rows = 1500, .cols = 100}, 1);
  const HostMatrix b = Drawn({.rows = 100, .cols = 100}, 2);
  int cancelled = 0;
  for (int i = 0; i < 30; ++i) {
    const Canceller canceller;
    auto result =
        client_->MultiplyFuture({.a = a.view(), .b = b.view(), .kernel = {.name = kPromises}},
                                {.canceller = canceller, .transport = Transport::kRowBlocks});
    std::this_thread::sleep_for(std::chrono::milliseconds(i));
    canceller.Cancel();
    const absl::Status status = result.get().status();
    EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
    cancelled += absl::IsCancelled(status) ? 1 : 0;
  }
  EXPECT_GT(cancelled, 0) << "no product was cancelled in time";
  ExpectNothingLeft();
  for (int i = 0; i < 500 && client_->GetServerInfo()->load().jobs() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(client_->GetServerInfo()->load().jobs(), 0u);
}

// They go where they end soonest, and B with them.
TEST_F(RowBlocksOnTwoDevicesTest, BlocksOnEitherDeviceHaveTheBitsOfTheWhole) {
  for (unsigned i = 0; i < 4; ++i) {
    const HostMatrix a = Drawn({.rows = 500, .cols = 60}, i);
    const HostMatrix b = Drawn({.rows = 60, .cols = 50}, i + 100);
    const HostMatrix bias = Drawn({.rows = 1, .cols = 50}, i + 200);
    ExpectBitsOfTheWhole({.a = a.view(), .b = b.view(), .bias = bias.view()});
  }
}

}  // namespace
}  // namespace gemmd::client
