// The client against the real server, on host devices.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gemmd/client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/server_fixture.h"

namespace gemmd::client {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

HostMatrix Filled(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> small(-4, 4);
  HostMatrix matrix = *HostMatrix::Allocate(shape);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    StoreElement(matrix.data(), i, shape.dtype, small(random));
  }
  return matrix;
}

struct Scalars {
  bool transpose_a = false;
  bool transpose_b = false;
  double alpha = 1;
  double beta = 0;
};

// alpha op(A) op(B) + beta C in double; small integers make it exact.
std::vector<double> Expected(const HostMatrix& a, const HostMatrix& b, const Scalars& s = {},
                             const HostMatrix* c = nullptr) {
  const int64_t m = s.transpose_a ? a.shape().cols : a.shape().rows;
  const int64_t k = s.transpose_a ? a.shape().rows : a.shape().cols;
  const int64_t n = s.transpose_b ? b.shape().rows : b.shape().cols;
  std::vector<double> left(m * k), right(k * n), values(m * n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) left[i * k + l] = s.transpose_a ? a.Get(l, i) : a.Get(i, l);
  }
  for (int64_t l = 0; l < k; ++l) {
    for (int64_t j = 0; j < n; ++j) right[l * n + j] = s.transpose_b ? b.Get(j, l) : b.Get(l, j);
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      for (int64_t j = 0; j < n; ++j) values[i * n + j] += left[i * k + l] * right[l * n + j];
    }
  }
  for (int64_t i = 0; i < m * n; ++i) {
    values[i] *= s.alpha;
    if (c != nullptr) values[i] += s.beta * c->Get(i / n, i % n);
  }
  return values;
}

class TwoDevicesTest : public ServerTest {
 protected:
  TwoDevicesTest() : ServerTest("host:2") {}
};

TEST_F(ServerTest, TellsOfItself) {
  EXPECT_FALSE(client_->server().version().empty());
  EXPECT_THAT(client_->server().devices(), SizeIs(1));
  EXPECT_GT(client_->server().limits().max_message_bytes(), 0u);
  const auto kernels = client_->ListKernels();
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  EXPECT_FALSE(kernels->empty());
  const auto family = client_->ListKernels(kernels->front().family());
  ASSERT_TRUE(family.ok()) << family.status();
  EXPECT_LE(family->size(), kernels->size());
}

TEST_F(ServerTest, RanksTheKernelsOfAProduct) {
  RankKernelsRequest request;
  request.mutable_size()->set_m(8);
  request.mutable_size()->set_n(9);
  request.mutable_size()->set_k(10);
  request.mutable_types()->set_a(kF64);
  const auto ranking = client_->RankKernels(request);
  ASSERT_TRUE(ranking.ok()) << ranking.status();
  ASSERT_FALSE(ranking->kernels().empty());
  const HostMatrix a = Filled({.rows = 8, .cols = 10, .dtype = kF64}, 1);
  const HostMatrix b = Filled({.rows = 10, .cols = 9, .dtype = kF64}, 2);
  const auto product = client_->Multiply({.a = a.view(), .b = b.view()});
  ASSERT_TRUE(product.ok()) << product.status();
  EXPECT_EQ(product->report.kernel(), ranking->kernels(0).name());
  EXPECT_EQ(product->report.rule(), ranking->rule());
}

TEST_F(ServerTest, ListsWhatIsWorthTuning) {
  const HostMatrix a = Filled({.rows = 8, .cols = 10, .dtype = kF64}, 1);
  const HostMatrix b = Filled({.rows = 10, .cols = 9, .dtype = kF64}, 2);
  ASSERT_TRUE(client_->Multiply({.a = a.view(), .b = b.view()}).ok());
  const auto traffic = client_->ListTraffic(10);
  ASSERT_TRUE(traffic.ok()) << traffic.status();
  ASSERT_THAT(traffic->entries(), SizeIs(1));
  EXPECT_EQ(traffic->entries(0).size().n(), 9);
  EXPECT_TRUE(absl::IsInvalidArgument(client_->ListTraffic(5000).status()));
}

TEST_F(ServerTest, HasNoTuningTablesToReadAgain) {
  const absl::Status status = client_->ReloadTuning().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("--tuning-tables"));
}

TEST_F(ServerTest, EveryTransportTypeAndLayout) {
  for (const DataType dtype : {kF64, kF32, kF16, kBF16}) {
    for (const Layout layout : {kRowMajor, kColumnMajor}) {
      const HostMatrix a = Filled({.rows = 61, .cols = 300, .dtype = dtype, .layout = layout}, 1);
      const HostMatrix b = Filled({.rows = 61, .cols = 47, .dtype = dtype}, 2);
      const std::vector<double> expected = Expected(a, b, {.transpose_a = true});
      for (const Transport transport :
           {Transport::kAuto, Transport::kUnary, Transport::kStream, Transport::kStriped}) {
        const auto result = client_->Multiply({.a = a.view(),
                                               .b = b.view(),
                                               .transpose_a = true,
                                               .output_dtype = dtype == kBF16 ? kF32 : dtype,
                                               .output_layout = layout},
                                              {.transport = transport});
        ASSERT_TRUE(result.ok()) << result.status() << " " << Name(dtype);
        ASSERT_EQ(result->matrix.ToDoubles(), expected)
            << Name(dtype) << " " << Name(layout) << " " << static_cast<int>(transport);
        EXPECT_EQ(result->report.m(), 300);
        EXPECT_EQ(result->report.n(), 47);
        EXPECT_EQ(result->report.k(), 61);
      }
    }
  }
  ExpectNothingLeft();
}

TEST_F(ServerTest, AGroupGoesOverEveryTransport) {
  const std::vector<int64_t> rows = {90, 0, 1, 149, 60};
  constexpr int64_t kM = 300, kK = 40, kN = 50;
  const auto count = static_cast<int64_t>(rows.size());
  const HostMatrix a = Filled({.rows = kM, .cols = kK}, 1);
  const HostMatrix b = Filled({.rows = count * kK, .cols = kN}, 2);
  const auto part = [](const HostMatrix& all, int64_t first, int64_t height) {
    HostMatrix one = *HostMatrix::Allocate({.rows = height, .cols = all.shape().cols});
    for (int64_t row = 0; row < height; ++row) {
      for (int64_t col = 0; col < all.shape().cols; ++col) {
        one.Set(row, col, all.Get(first + row, col));
      }
    }
    return one;
  };
  std::vector<ProductSize> group;
  for (const int64_t m : rows) group.push_back({m, kN, kK});
  for (const Transport transport : {Transport::kUnary, Transport::kStream, Transport::kStriped}) {
    auto result =
        client_->Multiply({.a = a.view(), .b = b.view(), .group = group}, {.transport = transport});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->transport, transport);
    EXPECT_EQ(result->report.group_count(), count);
    EXPECT_EQ(result->report.m(), kM);
    ASSERT_EQ(result->matrix.shape(), (Shape{.rows = kM, .cols = kN}));
    int64_t first = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t own = rows[static_cast<size_t>(i)];
      if (own == 0) continue;
      const std::vector<double> expected = Expected(part(a, first, own), part(b, i * kK, kK));
      for (int64_t j = 0; j < own * kN; ++j) {
        ASSERT_EQ(result->matrix.Get(first + j / kN, j % kN), expected[j]) << i << ", " << j;
      }
      first += own;
    }
  }
}

TEST_F(ServerTest, ABatchGoesOverEveryTransport) {
  constexpr int64_t kBatch = 5, kM = 60, kK = 40, kN = 50;
  const HostMatrix a = Filled({.rows = kBatch * kM, .cols = kK}, 1);
  const HostMatrix b = Filled({.rows = kBatch * kK, .cols = kN}, 2);
  const HostMatrix shared = Filled({.rows = kK, .cols = kN}, 3);
  HostMatrix all_of_shared = *HostMatrix::Allocate(b.shape());
  for (int64_t i = 0; i < b.shape().elements(); ++i) {
    all_of_shared.Set(i / kN, i % kN, shared.Get(i / kN % kK, i % kN));
  }
  const auto part = [](const HostMatrix& all, int64_t i) {
    const int64_t rows = all.shape().rows / kBatch, cols = all.shape().cols;
    HostMatrix one = *HostMatrix::Allocate({.rows = rows, .cols = cols});
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; ++col) one.Set(row, col, all.Get(i * rows + row, col));
    }
    return one;
  };
  for (const Transport transport : {Transport::kUnary, Transport::kStream, Transport::kStriped}) {
    for (const bool shares : {false, true}) {
      auto result = client_->Multiply({.a = a.view(),
                                       .b = shares ? shared.view() : b.view(),
                                       .batch_count = kBatch,
                                       .shared = {.b = shares}},
                                      {.transport = transport});
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->transport, transport);
      EXPECT_EQ(result->report.batch_count(), kBatch);
      ASSERT_EQ(result->matrix.shape(), (Shape{.rows = kBatch * kM, .cols = kN}));
      for (int64_t i = 0; i < kBatch; ++i) {
        const std::vector<double> expected =
            Expected(part(a, i), part(shares ? all_of_shared : b, i));
        for (int64_t j = 0; j < kM * kN; ++j) {
          ASSERT_EQ(result->matrix.Get(i * kM + j / kN, j % kN), expected[j]) << i << ", " << j;
        }
      }
    }
  }
}

TEST_F(ServerTest, WholeContractInOneProduct) {
  const HostMatrix a = Filled({.rows = 40, .cols = 30}, 1);
  const HostMatrix b = Filled({.rows = 50, .cols = 30}, 2);
  const HostMatrix c = Filled({.rows = 40, .cols = 50}, 3);
  const HostMatrix bias = Filled({.rows = 1, .cols = 50}, 4);
  std::vector<double> expected =
      Expected(a, b, {.transpose_b = true, .alpha = 2, .beta = -0.5}, &c);
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] = std::max(0.0, expected[i] + bias.Get(0, static_cast<int64_t>(i % 50)));
  }
  for (const Transport transport : {Transport::kUnary, Transport::kStream}) {
    const auto result = client_->Multiply({.a = a.view(),
                                           .b = b.view(),
                                           .c = c.view(),
                                           .bias = bias.view(),
                                           .transpose_b = true,
                                           .alpha = 2,
                                           .beta = -0.5,
                                           .activation = kRelu,
                                           .kernel = {.name = "auto"}},
                                          {.transport = transport});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->matrix.ToDoubles(), expected);
    EXPECT_FALSE(result->report.kernel().empty());
    EXPECT_FALSE(result->report.reason().empty());
  }
}

TEST_F(ServerTest, AProductIsCheckedWhereItIsAskedFor) {
  const HostMatrix a = Filled({.rows = 30, .cols = 40}, 1);
  const HostMatrix b = Filled({.rows = 40, .cols = 50}, 2);
  for (const Transport transport : {Transport::kUnary, Transport::kStream, Transport::kStriped}) {
    const auto result = client_->Multiply({.a = a.view(), .b = b.view(), .verify = kVerifyAlways},
                                          {.transport = transport});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(Name(result->report.check().result()), "passed");
    EXPECT_EQ(result->matrix.ToDoubles(), Expected(a, b));
  }
}

TEST_F(ServerTest, LargeProductIsStripedAndLeavesNothing) {
  const HostMatrix a = Filled({.rows = 601, .cols = 400}, 1);
  const HostMatrix b = Filled({.rows = 400, .cols = 555}, 2);
  const auto result = client_->Multiply({.a = a.view(), .b = b.view()});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->transport, Transport::kStriped);
  EXPECT_EQ(result->matrix.ToDoubles(), Expected(a, b));
  ExpectNothingLeft();
}

TEST_F(TwoDevicesTest, StripedOperandsMeetOnOneDevice) {
  for (unsigned i = 0; i < 6; ++i) {
    const HostMatrix a = Filled({.rows = 301, .cols = 400}, i);
    const HostMatrix b = Filled({.rows = 400, .cols = 355}, i + 100);
    const auto result =
        client_->Multiply({.a = a.view(), .b = b.view()}, {.transport = Transport::kStriped});
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->matrix.ToDoubles(), Expected(a, b));
  }
  ExpectNothingLeft();
}

TEST_F(ServerTest, ResidentMatrices) {
  const HostMatrix a = Filled({.rows = 500, .cols = 301, .dtype = kF16}, 5);
  const auto info = client_->PutMatrix(a.view(), {.keep = {.name = "test/a"}, .device = "host:0"});
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->name(), "test/a");
  EXPECT_EQ(info->device(), "host:0");
  EXPECT_EQ(FromProto(info->shape()), a.shape());
  const auto product = client_->Multiply({.a = Resident::ByName("test/a"),
                                          .b = Resident::ById(info->id()),
                                          .transpose_b = true,
                                          .output_dtype = kF32,
                                          .result = {.fetch = false, .keep = Keep{}}});
  ASSERT_TRUE(product.ok()) << product.status();
  ASSERT_TRUE(product->kept.has_value());
  const auto fetched = client_->GetMatrix({.id = product->kept->id(), .release = true});
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->matrix.ToDoubles(), Expected(a, a, {.transpose_b = true}));
  EXPECT_THAT(*client_->ListMatrices("test/"), SizeIs(1));
  const auto again = client_->GetMatrix(Resident::ByName("test/a"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->matrix.ToDoubles(), a.ToDoubles());
  EXPECT_TRUE(client_->DeleteMatrix(Resident::ByName("test/a")).ok());
  EXPECT_TRUE(absl::IsNotFound(client_->GetMatrix(Resident::ByName("test/a")).status()));
  ExpectNothingLeft();
}

TEST_F(ServerTest, ResultOfUnknownShape) {
  const HostMatrix a = Filled({.rows = 300, .cols = 200}, 5);
  const auto info = client_->PutMatrix(a.view());
  ASSERT_TRUE(info.ok()) << info.status();
  const auto result = client_->Multiply(
      {.a = Resident::ById(info->id()), .b = Resident::ById(info->id()), .transpose_b = true});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->matrix.ToDoubles(), Expected(a, a, {.transpose_b = true}));
}

TEST_F(ServerTest, GeneratedMatricesAreTheSameForTheSameSeed) {
  const Generated drawn{.shape = {.rows = 64, .cols = 32}, .seed = 11, .distribution = Normal{}};
  const auto first = client_->PutGenerated(drawn);
  const auto second = client_->PutGenerated(drawn);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  const auto x = client_->GetMatrix(Resident::ById(first->id()));
  const auto y = client_->GetMatrix(Resident::ById(second->id()));
  ASSERT_TRUE(x.ok() && y.ok());
  EXPECT_EQ(x->matrix.ToDoubles(), y->matrix.ToDoubles());
  EXPECT_THAT(x->matrix.ToDoubles(), Not(Each(0.0)));
}

TEST_F(ServerTest, ErrorsOfTheServerComeThrough) {
  const HostMatrix a = Filled({.rows = 4, .cols = 4}, 1);
  for (const Transport transport : {Transport::kUnary, Transport::kStream}) {
    const auto unknown =
        client_->Multiply({.a = a.view(), .b = a.view(), .kernel = {.name = "host_openblast"}},
                          {.transport = transport});
    EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound) << unknown.status();
    EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("host_openblas"));
    const auto missing = client_->Multiply({.a = Resident::ById("nothing"), .b = a.view()},
                                           {.transport = transport});
    EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound) << missing.status();
  }
}

TEST_F(ServerTest, FailedStripedProductLeavesNothing) {
  const HostMatrix a = Filled({.rows = 500, .cols = 400}, 1);
  const auto result = client_->Multiply(
      {.a = a.view(), .b = a.view(), .transpose_b = true, .kernel = {.name = "no_such_kernel"}});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kNotFound) << result.status();
  ExpectNothingLeft();
}

TEST_F(ServerTest, FullStoreFallsBackToOneStream) {
  // Half the store at once, so that two operands do not fit beside it.
  const auto filler = client_->PutGenerated({.shape = {.rows = 1024, .cols = 31 * 1024}});
  ASSERT_TRUE(filler.ok()) << filler.status();
  const HostMatrix a = Filled({.rows = 1000, .cols = 700, .dtype = kF64}, 1);
  const auto result = client_->Multiply({.a = a.view(), .b = a.view(), .transpose_b = true});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->transport, Transport::kStream);
  EXPECT_EQ(result->matrix.ToDoubles(), Expected(a, a, {.transpose_b = true}));
}

TEST_F(ServerTest, DeadlinesAndCancellationsLeaveTheServerWell) {
  const HostMatrix a = Filled({.rows = 700, .cols = 700}, 1);
  std::mt19937 random(7);
  int broken_off = 0;
  for (int i = 0; i < 30; ++i) {
    const auto wait = std::chrono::microseconds(random() % 8000);
    const Transport transport = i % 2 == 0 ? Transport::kStream : Transport::kStriped;
    if (i % 3 == 0) {
      const auto late =
          client_->Multiply({.a = a.view(), .b = a.view()},
                            {.timeout = absl::FromChrono(wait), .transport = transport});
      EXPECT_TRUE(late.ok() || absl::IsDeadlineExceeded(late.status())) << late.status();
      broken_off += late.ok() ? 0 : 1;
    } else {
      const Canceller canceller;
      auto future = client_->MultiplyFuture({.a = a.view(), .b = a.view()},
                                            {.canceller = canceller, .transport = transport});
      std::this_thread::sleep_for(wait);
      canceller.Cancel();
      const auto result = future.get();
      EXPECT_TRUE(result.ok() || absl::IsCancelled(result.status())) << result.status();
      broken_off += result.ok() ? 0 : 1;
    }
  }
  EXPECT_GT(broken_off, 0) << "no call was broken off in time";
  ExpectNothingLeft();
  const auto good = client_->Multiply({.a = a.view(), .b = a.view()});
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->matrix.ToDoubles(), Expected(a, a));
}

TEST_F(ServerTest, HundredConcurrentCalls) {
  std::vector<HostMatrix> operands;
  std::vector<std::vector<double>> expected;
  for (const int64_t size : {5, 40, 90, 300}) {
    operands.push_back(Filled({.rows = size, .cols = size}, static_cast<unsigned>(size)));
    expected.push_back(Expected(operands.back(), operands.back()));
  }
  std::vector<std::future<absl::StatusOr<ProductResult>>> futures;
  for (int i = 0; i < 100; ++i) {
    const MatrixView view = operands[i % 4].view();
    futures.push_back(client_->MultiplyFuture({.a = view, .b = view}));
  }
  for (int i = 0; i < 100; ++i) {
    const auto result = futures[i].get();
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->matrix.ToDoubles(), expected[i % 4]) << i;
  }
  ExpectNothingLeft();
}

TEST_F(ServerTest, ServerStopsInMidCall) {
  const HostMatrix a = Filled({.rows = 1100, .cols = 1100}, 1);
  std::vector<std::future<absl::StatusOr<ProductResult>>> futures;
  for (int i = 0; i < 8; ++i) {
    futures.push_back(client_->MultiplyFuture(
        {.a = a.view(), .b = a.view()},
        {.transport = i % 2 == 0 ? Transport::kStream : Transport::kStriped}));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  (void)server_->Stop(absl::ZeroDuration());
  server_.reset();
  for (auto& future : futures) {
    const absl::Status status = future.get().status();
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
  }
}

}  // namespace
}  // namespace gemmd::client
