// A call whose caller has quotas: under a clock that the test moves, without gRPC.
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gemm/v1/gemm.pb.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/test_clock.h"
#include "tests/rpc/test_call.h"

namespace gemmd {
namespace {

using ::testing::IsEmpty;

// Before the threads that read the clock.
struct HasTestClock {
  TestClock clock;
};

// A caller that may move 64 KiB a second and have one call open.
class RateTest : public HasTestClock, public CallLifeTest {
 protected:
  static constexpr int64_t kRate = 64 << 10;

  RateTest() {
    std::ofstream(path_) << "* bytes-per-second=64KiB streams=1\n";
    bounded_ = *Identity::Create({.quotas_file = path_}, nullptr);
    rated_.reset(new ServiceContext{.engine = engine_,
                                    .benchmarks = benchmarks_,
                                    .live_calls = live_calls_,
                                    .traffic = traffic_,
                                    .identity = *bounded_,
                                    .limits = {},
                                    .version = "",
                                    .commit = "",
                                    .started = {},
                                    .on_end = [](const RpcEnd&) {}});
    call_ = NewCall();
  }
  ~RateTest() override { traffic_.timer().Stop(); }

  std::shared_ptr<TestCall> NewCall() { return std::make_shared<TestCall>(*rated_, &context_); }
  void Install(const std::string& quotas) {
    std::ofstream(path_) << quotas;
    bounded_->ReloadChanged(/*all=*/true);
  }
  void Pass(absl::Duration time) {
    clock.Advance(time);
    RunDue(traffic_.timer());
  }

  const std::string path_ =
      absl::StrCat(testing::TempDir(), "/call_life_test.",
                   testing::UnitTest::GetInstance()->current_test_info()->name());
  std::unique_ptr<Identity> bounded_;
  std::unique_ptr<ServiceContext> rated_;
};

TEST_F(RateTest, ACallIsNotReadUntilItsCallerHasMadeUpForItsBytes) {
  call_->GoLive();
  call_->Charge(3 * kRate);
  call_->WantReads(true);
  EXPECT_EQ(call_->reads, 0);
  EXPECT_TRUE(call_->held_back);
  Pass(absl::Milliseconds(1900));
  EXPECT_EQ(call_->reads, 0);
  Pass(absl::Milliseconds(200));
  EXPECT_EQ(call_->reads, 1);
  EXPECT_FALSE(call_->held_back);
}

TEST_F(RateTest, WhatIsSentCountsAndIsNotHeldBack) {
  call_->GoLive();
  call_->Send(Message(std::string(3 * kRate, 'x')));
  call_->Send(Message("b"));
  call_->WriteEnds();
  EXPECT_EQ(call_->written.size(), 2u);
  call_->WantReads(true);
  EXPECT_EQ(call_->reads, 0);
  Pass(absl::Seconds(3));
  EXPECT_EQ(call_->reads, 1);
}

TEST_F(RateTest, AStartWaits) {
  call_->GoLive();
  call_->Charge(3 * kRate);
  call_->WorkEnds(absl::OkStatus());
  call_->Ended();
  const auto next = NewCall();
  int started = 0;
  next->GoLiveAtItsRate(0, [&started] {
    ++started;
    return absl::NotFoundError("no such matrix");
  });
  EXPECT_EQ(started, 0);
  EXPECT_THAT(next->finished, IsEmpty());
  Pass(absl::Seconds(3));
  EXPECT_EQ(started, 1);
  ASSERT_EQ(next->finished.size(), 1u);
  EXPECT_EQ(next->finished[0].error_code(), grpc::StatusCode::NOT_FOUND);
  next->Ended();
}

TEST_F(RateTest, AStartThatWaitsEndsWithItsCallAndWithTheServer) {
  call_->GoLive();
  call_->Charge(1000 * kRate);
  call_->WorkEnds(absl::OkStatus());
  call_->Ended();
  for (const bool drain : {true, false}) {
    const auto next = NewCall();
    next->GoLiveAtItsRate(0, [] {
      ADD_FAILURE() << "it has ended before";
      return absl::OkStatus();
    });
    drain ? next->BeginDrain() : next->Cancelled();
    ASSERT_EQ(next->finished.size(), 1u);
    EXPECT_EQ(next->finished[0].error_code(),
              drain ? grpc::StatusCode::UNAVAILABLE : grpc::StatusCode::CANCELLED);
    next->Ended();
  }
  Pass(absl::Hours(1));
}

TEST_F(RateTest, ADrainStartsWhatFetchesResultsAtOnce) {
  call_->GoLive();
  call_->Charge(1000 * kRate);
  call_->WorkEnds(absl::OkStatus());
  call_->Ended();
  const auto next = NewCall();
  next->while_draining = true;
  int started = 0;
  next->GoLiveAtItsRate(0, [&started] {
    ++started;
    return absl::OkStatus();
  });
  EXPECT_EQ(started, 0);
  next->BeginDrain();
  EXPECT_EQ(started, 1);
  EXPECT_THAT(next->finished, IsEmpty());
  next->WorkEnds(absl::OkStatus());
  ASSERT_EQ(next->finished.size(), 1u);
  EXPECT_TRUE(next->finished[0].ok());
  next->Ended();
}

// Neither while its caller has to make up for bytes, nor while the call itself reads no further.
TEST_F(RateTest, TheClientIsWaitedForWhileItIsReadAlone) {
  call_->GoLive();
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(call_->waited(), absl::ZeroDuration());
  call_->WantReads(true);
  clock.Advance(absl::Seconds(2));
  EXPECT_EQ(call_->waited(), absl::Seconds(2));
  call_->in_message = [this] { clock.Advance(absl::Seconds(4)); };
  call_->ReadEnds(true);
  EXPECT_EQ(call_->waited(), absl::Seconds(2));
  clock.Advance(absl::Seconds(8));
  EXPECT_EQ(call_->waited(), absl::Seconds(10));
  call_->in_message = [this] { call_->Charge(3 * kRate); };
  call_->ReadEnds(true);
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(call_->reads, 2);
  EXPECT_EQ(call_->waited(), absl::Seconds(10));
}

TEST_F(RateTest, RequestsThatWaitAreBoundedToASecondsWorth) {
  Install("* bytes-per-second=64KiB\n");
  call_->GoLive();
  call_->Charge(3 * kRate);
  int started = 0;
  const auto start = [&started] {
    ++started;
    return absl::OkStatus();
  };
  const auto first = NewCall();
  first->GoLiveAtItsRate(kRate, start);
  EXPECT_THAT(first->finished, IsEmpty()) << "it waits";
  const auto second = NewCall();
  second->GoLiveAtItsRate(1, start);
  ASSERT_EQ(second->finished.size(), 1u);
  EXPECT_EQ(second->finished[0].error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  Pass(absl::Seconds(3));
  EXPECT_EQ(started, 1);
  call_->Charge(3 * kRate);
  const auto third = NewCall();
  third->GoLiveAtItsRate(kRate, start);
  EXPECT_THAT(third->finished, IsEmpty()) << "the first waits no more";
  third->Cancelled();
  const auto fourth = NewCall();
  fourth->GoLiveAtItsRate(kRate, start);
  EXPECT_EQ(fourth->finished.size(), 1u) << "gRPC still holds the request of the third";
  third->Ended();
  const auto fifth = NewCall();
  fifth->GoLiveAtItsRate(kRate, start);
  EXPECT_THAT(fifth->finished, IsEmpty());
}

TEST_F(RateTest, AnotherQuotasFileReachesCallsThatWait) {
  Install("* bytes-per-second=64KiB\n");
  call_->GoLive();
  call_->Charge(1000 * kRate);
  call_->WantReads(true);
  int started = 0;
  const auto next = NewCall();
  next->GoLiveAtItsRate(0, [&started] {
    ++started;
    return absl::OkStatus();
  });
  Pass(absl::Seconds(2));
  EXPECT_EQ(call_->reads, 0);
  EXPECT_EQ(started, 0);
  Install("* bytes-per-second=64MiB\n");
  Pass(absl::Seconds(1));  // they ask again
  Pass(absl::Seconds(1));
  EXPECT_EQ(call_->reads, 1);
  EXPECT_EQ(started, 1);
}

TEST_F(RateTest, TheRequestOfACallThatIsRefusedCounts) {
  Install("* bytes-per-second=64KiB\n");
  call_->GoLive();
  call_->Charge(2 * kRate);
  int started = 0;
  const auto start = [&started] {
    ++started;
    return absl::OkStatus();
  };
  const auto first = NewCall();
  first->GoLiveAtItsRate(kRate, start);
  const auto second = NewCall();
  second->GoLiveAtItsRate(5 * kRate, start);
  EXPECT_EQ(second->finished.size(), 1u);
  Pass(absl::Seconds(2));
  EXPECT_EQ(started, 0) << "a second for call_, and five for the second one";
  Pass(absl::Seconds(5));
  EXPECT_EQ(started, 1);
  call_->WantReads(true);
  EXPECT_EQ(call_->reads, 1) << "the first one's request has counted once";
}

TEST_F(RateTest, ARefusalNeverAsksToTryAgainAtOnce) {
  Install("* bytes-per-second=64KiB\n");
  call_->GoLive();
  call_->Charge(kRate + 1);  // made up for in a moment
  const auto start = [] { return absl::OkStatus(); };
  const auto first = NewCall();
  first->GoLiveAtItsRate(kRate, start);
  const auto second = NewCall();
  second->GoLiveAtItsRate(1, start);
  ASSERT_EQ(second->finished.size(), 1u);
  gemm::v1::StatusDetails details;
  ASSERT_TRUE(details.ParseFromString(second->finished[0].error_details()));
  gemm::v1::RetryInfo retry;
  ASSERT_TRUE(retry.ParseFromString(details.details(0).value()));
  EXPECT_EQ(retry.retry_delay().seconds(), 0);
  EXPECT_EQ(retry.retry_delay().nanos(), 100'000'000);
}

TEST_F(RateTest, OneCallMoreThanAllowedIsRefused) {
  call_->GoLive();
  const auto next = NewCall();
  next->GoLive([] {
    ADD_FAILURE() << "it must not begin";
    return absl::OkStatus();
  });
  ASSERT_EQ(next->finished.size(), 1u);
  EXPECT_EQ(next->finished[0].error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  gemm::v1::StatusDetails details;
  ASSERT_TRUE(details.ParseFromString(next->finished[0].error_details()));
  EXPECT_EQ(details.code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(details.message(), next->finished[0].error_message());
  next->Ended();
  call_->WorkEnds(absl::OkStatus());
  call_->Ended();
  const auto after = NewCall();
  after->GoLive();
  EXPECT_THAT(after->finished, IsEmpty()) << "the first one has given its place back";
  after->Ended();
}

}  // namespace
}  // namespace gemmd
