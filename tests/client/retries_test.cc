// Which calls are tried again, when, and how often.
#include "client/cpp/calls/retries.h"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/products/multiply_attempt.h"
#include "gemmd/client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_server.h"

namespace gemmd::client {
namespace {

namespace v1 = ::gemm::v1;
using grpc::StatusCode;

// As a server refuses that says when to try again; without a delay it does not say.
grpc::Status RefusedFor(StatusCode code, std::optional<absl::Duration> delay) {
  v1::StatusDetails details;
  details.set_code(code);
  if (delay) {
    v1::RetryInfo info;
    info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(*delay)));
    auto& any = *details.add_details();
    any.set_type_url("type.googleapis.com/google.rpc.RetryInfo");
    any.set_value(info.SerializeAsString());
  }
  return grpc::Status(code, "not now", details.SerializeAsString());
}

const absl::Status kRefused =
    FromGrpc(RefusedFor(StatusCode::RESOURCE_EXHAUSTED, absl::Milliseconds(300)));

TEST(RetryDelay, IsWhatTheServerSays) {
  EXPECT_EQ(RetryDelay(kRefused), absl::Milliseconds(300));
  EXPECT_FALSE(RetryDelay(FromGrpc(RefusedFor(StatusCode::UNAVAILABLE, std::nullopt))));
  EXPECT_FALSE(RetryDelay(absl::UnavailableError("")));
  v1::JobError error;
  error.set_code(8);
  error.set_message("jobs: no more");
  EXPECT_FALSE(RetryDelay(FromJobError(error)));
  error.mutable_retry_info()->mutable_retry_delay()->set_seconds(2);
  EXPECT_EQ(RetryDelay(FromJobError(error)), absl::Seconds(2));
  EXPECT_EQ(FromJobError(error).message(), "jobs: no more");
  EXPECT_TRUE(absl::IsResourceExhausted(FromJobError(error)));
}

TEST(RetryDelay, IsNotBelowZero) {
  v1::JobError error;
  error.set_code(8);
  error.mutable_retry_info()->mutable_retry_delay()->set_seconds(-2);
  EXPECT_EQ(RetryDelay(FromJobError(error)), absl::ZeroDuration());
}

TEST(JobErrors, AreErrorsAndKeepWhatTheServerSaysOfQuotas) {
  v1::JobError error;
  EXPECT_EQ(FromJobError(error).code(), absl::StatusCode::kUnknown) << "OK is no error's code";
  error.set_code(8);
  error.mutable_quota_failure()->add_violations()->set_subject("alice");
  const auto payload =
      FromJobError(error).GetPayload("type.googleapis.com/google.rpc.QuotaFailure");
  ASSERT_TRUE(payload.has_value());
  v1::QuotaFailure quota;
  ASSERT_TRUE(quota.ParseFromString(std::string(*payload)));
  EXPECT_EQ(quota.violations(0).subject(), "alice");
}

class RetriesTest : public testing::Test {
 protected:
  std::optional<absl::Duration> Next(const absl::Status& status, Repeated repeated,
                                     absl::Time deadline = absl::InfiniteFuture()) {
    RetryBudget budget(options_);
    return Retries(options_, budget, repeated).Next(status, deadline);
  }

  RetryOptions options_;
};

TEST_F(RetriesTest, WhatWasRefusedIsTriedAgainAndWhatMayHaveRunOnlyWhereThatIsTheSame) {
  const absl::Status gone = absl::UnavailableError("gone");
  EXPECT_TRUE(Next(kRefused, Repeated::kSame));
  EXPECT_TRUE(Next(kRefused, Repeated::kDifferent));
  EXPECT_TRUE(Next(gone, Repeated::kSame));
  EXPECT_FALSE(Next(gone, Repeated::kDifferent));
  // UNAVAILABLE tells when, and not that nothing was done.
  const absl::Status told = FromGrpc(RefusedFor(StatusCode::UNAVAILABLE, absl::Milliseconds(1)));
  EXPECT_TRUE(Next(told, Repeated::kSame));
  EXPECT_FALSE(Next(told, Repeated::kDifferent));
  for (const Repeated repeated : {Repeated::kSame, Repeated::kDifferent}) {
    EXPECT_FALSE(Next(absl::ResourceExhaustedError("too large for this client"), repeated));
    EXPECT_FALSE(Next(absl::InternalError(""), repeated));
    EXPECT_FALSE(Next(absl::AbortedError(""), repeated));
    EXPECT_FALSE(Next(absl::DeadlineExceededError(""), repeated));
  }
}

TEST_F(RetriesTest, WaitsAtLeastWhatTheServerSaysAndARandomTimeMore) {
  options_.first_wait = absl::Milliseconds(100);
  absl::Duration least = absl::InfiniteDuration();
  absl::Duration most;
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration wait = *Next(kRefused, Repeated::kSame);
    least = std::min(least, wait);
    most = std::max(most, wait);
  }
  EXPECT_GE(least, absl::Milliseconds(300));
  EXPECT_LE(most, absl::Milliseconds(400));
  EXPECT_LT(least, absl::Milliseconds(320)) << "full jitter";
  EXPECT_GT(most, absl::Milliseconds(380));
}

TEST_F(RetriesTest, TheRandomTimeDoublesUpToItsBound) {
  options_ = {.attempts = 100,
              .first_wait = absl::Milliseconds(1),
              .longest_wait = absl::Milliseconds(8),
              .budget = 100};
  std::vector<absl::Duration> most(6);
  for (int round = 0; round < 500; ++round) {
    RetryBudget budget(options_);
    Retries retries(options_, budget, Repeated::kSame);
    for (absl::Duration& longest : most) {
      longest =
          std::max(longest, *retries.Next(absl::UnavailableError(""), absl::InfiniteFuture()));
    }
  }
  const std::vector<int> bounds = {1, 2, 4, 8, 8, 8};
  for (size_t i = 0; i < most.size(); ++i) {
    EXPECT_LE(most[i], absl::Milliseconds(bounds[i]));
    EXPECT_GT(most[i], absl::Milliseconds(bounds[i]) * 0.9) << i;
  }
}

TEST_F(RetriesTest, AttemptsDeadlineAndTheServersDelayAreBounds) {
  options_.attempts = 3;
  RetryBudget budget(options_);
  Retries retries(options_, budget, Repeated::kSame);
  EXPECT_TRUE(retries.Next(kRefused, absl::InfiniteFuture()));
  EXPECT_TRUE(retries.Next(kRefused, absl::InfiniteFuture()));
  EXPECT_FALSE(retries.Next(kRefused, absl::InfiniteFuture()));
  EXPECT_FALSE(Next(kRefused, Repeated::kSame, absl::Now() + absl::Milliseconds(200)));
  options_.longest_wait = absl::Milliseconds(200);
  EXPECT_FALSE(Next(kRefused, Repeated::kSame)) << "the server wants a longer wait";
  options_.attempts = 1;
  EXPECT_FALSE(Next(absl::UnavailableError(""), Repeated::kSame));
}

TEST_F(RetriesTest, AllCallsShareABudgetThatCallsPayInto) {
  options_ = {.attempts = 100, .budget = 2, .budget_per_call = 0.5};
  RetryBudget budget(options_);
  const auto again = [&] {
    return Retries(options_, budget, Repeated::kSame)
        .Next(absl::UnavailableError(""), absl::InfiniteFuture())
        .has_value();
  };
  EXPECT_TRUE(again());  // 2, full, less 1
  EXPECT_TRUE(again());  // 1.5
  EXPECT_TRUE(again());  // 1.0
  EXPECT_FALSE(again()) << "0.5 are left";
  EXPECT_TRUE(again()) << "that call has paid in, too";
}

// As of a server that drains, and has gone by the next attempt.
TEST_F(RetriesTest, WhereTheServerHasGoneTheFirstErrorIsToldToo) {
  const absl::Status drains = absl::UnavailableError("x:1: the server drains");
  const absl::Status nobody =
      absl::UnavailableError("x:1: failed to connect to all addresses: Connection refused");
  const auto told = [this](const std::vector<absl::Status>& errors) {
    RetryBudget budget(options_);
    Retries retries(options_, budget, Repeated::kSame);
    for (const absl::Status& error : errors) (void)retries.Next(error, absl::InfiniteFuture());
    return retries.Told(errors.back());
  };
  EXPECT_EQ(told({nobody}), nobody);
  EXPECT_EQ(told({drains, drains}), drains);
  EXPECT_EQ(
      told({drains, nobody, nobody}),
      absl::UnavailableError(absl::StrCat(drains.message(), "; tried again: ", nobody.message())));
  // Other errors say by themselves what there is to know.
  EXPECT_EQ(told({kRefused, nobody}), nobody);
  EXPECT_EQ(told({kRefused, drains, nobody}), told({drains, nobody}));
  EXPECT_EQ(told({drains, kRefused}), kRefused);
  EXPECT_EQ(told({drains, absl::NotFoundError("a")}), absl::NotFoundError("a"));
  const absl::Status other = absl::UnavailableError("x:1: failed to connect: timeout");
  EXPECT_EQ(told({nobody, other}), other);
}

class RetriedCallsTest : public testing::Test {
 protected:
  RetriedCallsTest() : client_(Connect({})) {
    refusal_ = RefusedFor(StatusCode::RESOURCE_EXHAUSTED, absl::Milliseconds(1));
    server_.faults().refuse = [this](const std::string& method) {
      std::lock_guard<std::mutex> lock(mutex_);
      return method == refused_method_ && refusals_-- > 0 ? refusal_ : grpc::Status::OK;
    };
  }

  std::unique_ptr<Client> Connect(RetryOptions retry) {
    retry.first_wait = absl::Milliseconds(1);
    auto connected = Client::Connect({.address = server_.address(),
                                      .channels = 3,
                                      .chunk_bytes = 4096,
                                      .unary_threshold_bytes = 8 << 10,
                                      .stripe_threshold_bytes = 64 << 10,
                                      .retry = retry});
    EXPECT_TRUE(connected.ok()) << connected.status();
    return *std::move(connected);
  }
  void Refuse(const std::string& method, int times) {
    std::lock_guard<std::mutex> lock(mutex_);
    refused_method_ = method;
    refusals_ = times;
  }

  static HostMatrix Square(int64_t n) {
    HostMatrix matrix = *HostMatrix::Allocate({.rows = n, .cols = n});
    for (int64_t i = 0; i < n * n; ++i) StoreElement(matrix.data(), i, kF32, i % 3 == 0 ? 1 : 0);
    return matrix;
  }
  Product Squares(int64_t n = 8) const { return {.a = Square(n).view(), .b = Square(n).view()}; }

  FakeServer server_;
  grpc::Status refusal_;
  std::mutex mutex_;
  std::string refused_method_;  // under mutex_
  int refusals_ = 0;            // under mutex_
  std::unique_ptr<Client> client_;
};

TEST_F(RetriedCallsTest, ARefusedProductEndsWellInEveryStyle) {
  const double want = client_->Multiply(Squares())->matrix.Get(7, 7);
  for (const Transport transport : {Transport::kUnary, Transport::kStream, Transport::kStriped}) {
    const CallOptions options{.transport = transport};
    const std::string method = transport == Transport::kUnary    ? "MultiplyUnary"
                               : transport == Transport::kStream ? "Multiply"
                                                                 : "PutMatrix";
    const int64_t n = transport == Transport::kStriped ? 64 : 8;
    Refuse(method, 2);
    const auto blocking = client_->Multiply(Squares(n), options);
    ASSERT_TRUE(blocking.ok()) << blocking.status();
    if (n == 8) {
      EXPECT_EQ(blocking->matrix.Get(7, 7), want);
    }
    Refuse(method, 1);
    const auto future = client_->MultiplyFuture(Squares(n), options).get();
    EXPECT_TRUE(future.ok()) << future.status();
  }
  EXPECT_TRUE(server_.MatricesBecome(0)) << "of the attempts that failed nothing stays";
}

TEST_F(RetriedCallsTest, QueriesAndTransfersAreTriedAgain) {
  const HostMatrix a = Square(8);
  Refuse("PutMatrix", 2);
  ASSERT_TRUE(client_->PutMatrix(a.view(), {.keep = {.name = "a"}}).ok());
  EXPECT_EQ(server_.calls("PutMatrix"), 3);
  Refuse("GetMatrix", 2);
  EXPECT_EQ(client_->GetMatrix(Resident::ByName("a"))->matrix.ToDoubles(), a.ToDoubles());
  Refuse("ListMatrices", 2);
  EXPECT_EQ(client_->ListMatrices()->size(), 1u);
  Refuse("GetServerInfo", 2);
  EXPECT_TRUE(client_->GetServerInfo().ok());
  Refuse("DeleteMatrix", 2);
  EXPECT_TRUE(client_->DeleteMatrix(Resident::ByName("a")).ok());
}

// The other stripes have landed by then: no call that is cancelled ends the upload.
TEST_F(RetriedCallsTest, OfASplitUploadThatIsRefusedInPartNothingStays) {
  const HostMatrix a = Square(160);
  std::atomic<int> begun{0};
  server_.faults().refuse = [&](const std::string& method) {
    if (method != "PutMatrix" || begun++ != 0) return grpc::Status::OK;
    while (server_.landed() < 2) absl::SleepFor(absl::Milliseconds(1));
    return refusal_;
  };
  const auto put = client_->PutMatrix(a.view(), {.keep = {.name = "a"}});
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(begun, 3 + 1 + 3) << "the end of the first attempt, and the second one";
  EXPECT_TRUE(server_.MatricesBecome(1)) << "of the first attempt nothing is left";
  EXPECT_EQ(client_->GetMatrix(Resident::ByName("a"))->matrix.ToDoubles(), a.ToDoubles());
}

// Its end counts as an open call, too.
TEST_F(RetriedCallsTest, TheEndOfASplitUploadIsTriedAgain) {
  client_ = Connect({.attempts = 1});
  const HostMatrix a = Square(160);
  std::atomic<int> begun{0};
  server_.faults().refuse = [&](const std::string& method) {
    if (method != "PutMatrix") return grpc::Status::OK;
    const int call = begun++;
    if (call == 0) {
      while (server_.landed() < 2) absl::SleepFor(absl::Milliseconds(1));
    }
    return call == 0 || (call >= 3 && call < 6) ? refusal_ : grpc::Status::OK;
  };
  const auto put = client_->PutMatrix(a.view(), {.keep = {.name = "a"}});
  EXPECT_TRUE(absl::IsResourceExhausted(put.status())) << put.status();
  EXPECT_EQ(begun, 3 + 4);
  EXPECT_EQ(server_.matrices(), 0u) << "before the call has returned";
}

// Within the budget: it may be the open calls of its stripes that are too many.
TEST_F(RetriedCallsTest, AStripedProductThatIsRefusedIsTriedAgainAsOneStream) {
  Refuse("PutMatrix", 1000);
  const auto poor = Connect({.attempts = 100, .budget = 0, .budget_per_call = 0});
  EXPECT_TRUE(absl::IsResourceExhausted(poor->Multiply(Squares(160)).status()));
  EXPECT_EQ(server_.calls("Multiply"), 0);
  const auto rich = Connect({})->Multiply(Squares(160));
  ASSERT_TRUE(rich.ok()) << rich.status();
  EXPECT_EQ(rich->transport, Transport::kStream);
}

TEST_F(RetriedCallsTest, ABenchmarkIsTriedAgainWhereItWasRefused) {
  int messages = 0;
  const auto benchmark = [&] {
    return client_->Benchmark({}, [&](const BenchmarkResponse&) { ++messages; }).status();
  };
  Refuse("Benchmark", 2);
  EXPECT_EQ(benchmark(), absl::OkStatus());
  EXPECT_EQ(server_.calls("Benchmark"), 3);
  EXPECT_EQ(messages, 1);
  refusal_ = RefusedFor(StatusCode::UNAVAILABLE, absl::Milliseconds(1));
  Refuse("Benchmark", 1);
  EXPECT_TRUE(absl::IsUnavailable(benchmark()));
  EXPECT_EQ(server_.calls("Benchmark"), 4);
}

TEST_F(RetriedCallsTest, TheErrorOfAServerThatGoesIsNotLost) {
  client_ = Connect({.attempts = 3});
  std::atomic<int> begun{0};
  // Not those that clean up after an attempt.
  server_.faults().refuse = [&](const std::string& method) {
    const bool first = method != "DeleteMatrix" && begun++ == 0;
    return grpc::Status(StatusCode::UNAVAILABLE, first ? "drains" : "gone");
  };
  // Not sent: each attempt begins one call.
  const Generated drawn{.shape = {.rows = 64, .cols = 64}};
  const auto told = testing::ContainsRegex("drains; tried again: .*gone");
  for (const Transport transport : {Transport::kUnary, Transport::kStream, Transport::kStriped}) {
    const Product product{.a = drawn, .b = drawn};
    begun = 0;
    const CallOptions options{.transport = transport};
    EXPECT_THAT(std::string(client_->Multiply(product, options).status().message()), told);
    begun = 0;
    const auto future = client_->MultiplyFuture(product, options).get();
    EXPECT_THAT(std::string(future.status().message()), told);
  }
  begun = 0;
  EXPECT_THAT(std::string(client_->GetServerInfo().status().message()), told);
}

TEST_F(RetriedCallsTest, WhatMayHaveRunIsNotRunTwiceWhereThatIsNotTheSame) {
  const HostMatrix a = Square(8);
  ASSERT_TRUE(client_->PutMatrix(a.view(), {.keep = {.name = "a"}}).ok());
  refusal_ = RefusedFor(StatusCode::UNAVAILABLE, absl::Milliseconds(1));
  const auto calls = [&](const char* method, const std::function<absl::Status()>& call) {
    const int before = server_.calls(method);
    Refuse(method, 1);
    const absl::Status status = call();
    Refuse(method, 0);
    const int made = server_.calls(method) - before;
    EXPECT_EQ(absl::IsUnavailable(status), made == 1) << status;
    return made;
  };
  EXPECT_EQ(calls("MultiplyUnary", [&] { return client_->Multiply(Squares()).status(); }), 2);
  EXPECT_EQ(calls("MultiplyUnary",
                  [&] {
                    Product product = Squares();
                    product.result = {.fetch = false, .keep = Keep{.name = "c"}};
                    return client_->Multiply(product).status();
                  }),
            1);
  EXPECT_EQ(calls("MultiplyUnary",
                  [&] {
                    Product product = Squares();
                    Resident used = Resident::ByName("a");
                    used.shape = a.shape();
                    product.a = used;
                    return client_->Multiply(product).status();
                  }),
            2);
  EXPECT_EQ(calls("MultiplyUnary",
                  [&] {
                    Product product = Squares();
                    Resident released = Resident::ByName("a");
                    released.shape = a.shape();
                    released.release = true;
                    product.b = released;
                    return client_->MultiplyFuture(product).get().status();
                  }),
            1);
  EXPECT_EQ(calls("PutMatrix", [&] { return client_->PutMatrix(a.view()).status(); }), 1);
  EXPECT_EQ(calls("GetMatrix", [&] { return client_->GetMatrix(Resident::ByName("a")).status(); }),
            3)
      << "the question for its shape, twice, and the download";
  EXPECT_EQ(calls("GetMatrix",
                  [&] {
                    Resident released = Resident::ByName("a");
                    released.release = true;
                    return client_->GetMatrix(released, {}).status();
                  }),
            1);
  EXPECT_EQ(
      calls("DeleteMatrix", [&] { return client_->DeleteMatrix(Resident::ByName("a")).status(); }),
      1);
}

TEST(RepeatedRunTest, AProductThatReleasesAnOperandIsAnotherOneTheNextTime) {
  const Resident used = Resident::ByName("x");
  const Product product{
      .a = used, .b = used, .c = used, .bias = used, .scales_a = used, .scales_b = used};
  EXPECT_EQ(RepeatedRun(product), Repeated::kSame);
  Resident released = used;
  released.release = true;
  const std::function<void(Product&)> operands[] = {
      [&](Product& p) { p.a = released; },        [&](Product& p) { p.b = released; },
      [&](Product& p) { p.c = released; },        [&](Product& p) { p.bias = released; },
      [&](Product& p) { p.scales_a = released; }, [&](Product& p) { p.scales_b = released; }};
  for (const auto& release : operands) {
    Product again = product;
    release(again);
    EXPECT_EQ(RepeatedRun(again), Repeated::kDifferent) << &release - operands;
  }
}

// The job has run, and has released its operand: only the download was refused.
TEST_F(RetriedCallsTest, AProductIsNotRunAgainOnceItHasReleasedAnOperand) {
  const HostMatrix a = Square(128);
  ASSERT_TRUE(client_->PutMatrix(a.view(), {.keep = {.name = "a"}}).ok());
  Product product{.a = Resident::ByName("a"), .b = a.view()};
  std::get<Resident>(product.a).shape = a.shape();
  std::get<Resident>(product.a).release = true;
  for (const Transport transport : {Transport::kAuto, Transport::kStriped}) {
    // All: a stripe of the first product may come while the second one is under way.
    Refuse("GetMatrix", 100);
    const absl::Status status = client_->Multiply(product, {.transport = transport}).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    Refuse("", 0);
    ASSERT_TRUE(client_->PutMatrix(a.view(), {.keep = {.name = "a"}}).ok()) << "it was released";
  }
}

TEST_F(RetriedCallsTest, AttemptsAndBudgetEnd) {
  Refuse("MultiplyUnary", 1000);
  EXPECT_TRUE(absl::IsResourceExhausted(client_->Multiply(Squares()).status()));
  EXPECT_EQ(server_.calls("MultiplyUnary"), 5);
  const auto once = Connect({.attempts = 1});
  EXPECT_FALSE(once->Multiply(Squares()).ok());
  EXPECT_EQ(server_.calls("MultiplyUnary"), 6);
  const auto poor = Connect({.attempts = 100, .budget = 3, .budget_per_call = 0});
  EXPECT_FALSE(poor->Multiply(Squares()).ok());
  EXPECT_EQ(server_.calls("MultiplyUnary"), 6 + 4);
  EXPECT_FALSE(poor->Multiply(Squares()).ok());
  EXPECT_EQ(server_.calls("MultiplyUnary"), 6 + 4 + 1);
}

TEST_F(RetriedCallsTest, AWaitEndsWithItsCancellerAndWithTheClient) {
  refusal_ = RefusedFor(StatusCode::RESOURCE_EXHAUSTED, absl::Milliseconds(900));
  Refuse("MultiplyUnary", 1000);
  client_ = Connect({.attempts = 100, .longest_wait = absl::Hours(1)});
  const Canceller canceller;
  auto cancelled = client_->MultiplyFuture(Squares(), {.canceller = canceller});
  auto destroyed = client_->MultiplyFuture(Squares());
  while (server_.calls("MultiplyUnary") < 2) absl::SleepFor(absl::Milliseconds(1));
  canceller.Cancel();
  EXPECT_TRUE(absl::IsCancelled(cancelled.get().status()));
  client_.reset();
  EXPECT_TRUE(absl::IsCancelled(destroyed.get().status()));
}

TEST_F(RetriedCallsTest, OptionsAreChecked) {
  const auto message = [this](RetryOptions retry) {
    return std::string(
        Client::Connect({.address = server_.address(), .retry = retry}).status().message());
  };
  EXPECT_THAT(message({.attempts = 0}), testing::HasSubstr("retry.attempts is 0"));
  EXPECT_THAT(message({.first_wait = absl::ZeroDuration()}),
              testing::HasSubstr("retry.first_wait"));
  EXPECT_THAT(message({.budget = -1}), testing::HasSubstr("retry.budget is -1"));
}

}  // namespace
}  // namespace gemmd::client
