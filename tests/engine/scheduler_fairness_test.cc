// Turns on the streams of a device, and refusals for deadlines, on a clock that moves as the jobs
// take time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/bounds/bound_error.h"
#include "server/engine/policy/cost_model.h"
#include "tests/engine/fairness_fixture.h"

namespace gemmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(FairnessTest, BesideAThousandLargeJobsASmallOneWaitsForOne) {
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(Submit(Claim("large", kLargeTime)).ok());
  TakeBegun();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(Submit(Claim("small", kSmallTime)).ok());
    EndOne(kLargeTime);
    EXPECT_EQ(TakeBegun(), std::vector<std::string>{"small"}) << i;
    EndOne(kSmallTime);
    EXPECT_EQ(TakeBegun(), std::vector<std::string>{"large"}) << i;
  }
}

// A batch is one job that pays for all of its products: a thousand small ones of a batch do not
// stand before one of another caller more than once.
TEST_F(FairnessTest, BesideHugeBatchesSmallProductsWaitForOneAndThenGetAsMuchTime) {
  const CostModel costs(gemm::Target::kHost);
  const auto cost = [&costs](int64_t products) {
    const auto count = static_cast<double>(products);
    return costs.Estimate(
        {.flops = count * 2 * 16 * 16 * 16, .bytes = count * 3 * 1024, .products = products});
  };
  const JobCost huge = cost(65'535), small = cost(1);
  ASSERT_GT(huge.device_time, 1000 * small.device_time);
  const auto claim = [](const std::string& caller, const JobCost& of) {
    return StreamClaim{.flow = caller, .weight = 1, .cost = {.device_time = of.device_time}};
  };
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Submit(claim("batches", huge)).ok());
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(Submit(claim("small", small)).ok());
  TakeBegun();
  EndOne(huge.device_time);
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(TakeBegun(), std::vector<std::string>{"small"}) << i;
    EndOne(small.device_time);
  }
  EXPECT_EQ(TakeBegun(), std::vector<std::string>{"batches"});
}

// The first estimates of a kernel may be far off: overpayment comes back.
TEST_F(FairnessTest, SharesHoldThoughTheEstimatesOfOneAreThirtyTimesTooLong) {
  const auto submit = [&](const std::string& caller, absl::Duration estimate) {
    ASSERT_TRUE(Submit(Claim(caller, estimate), kLargeTime).ok());
  };
  for (int i = 0; i < 500; ++i) submit("early", 30 * kLargeTime);
  for (int i = 0; i < 500; ++i) submit("late", kLargeTime);
  for (int i = 0; i < 600; ++i) EndOne(kLargeTime);
  // One job's estimate is what "late" may have had in advance.
  EXPECT_NEAR(absl::FDivDuration(device_time_["early"], kLargeTime), 300, 31);
}

class FourStreamsTest : public FairnessTest {
 protected:
  FourStreamsTest() : FairnessTest(/*streams=*/4) {}
};

// A caller that paid thirty times too much while it was alone has not saved up for later.
TEST_F(FourStreamsTest, WhoComesAfterDearJobsOfAnotherDoesNotWaitForAllThatWasPaidTooMuch) {
  const auto submit = [&](const std::string& caller, absl::Duration estimate) {
    ASSERT_TRUE(Submit(Claim(caller, estimate), kLargeTime).ok());
  };
  for (int i = 0; i < 40; ++i) submit("early", 30 * kLargeTime);
  for (int i = 0; i < 200; ++i) submit("early", kLargeTime);
  for (int i = 0; i < 40; ++i) RunOne();
  for (int i = 0; i < 200; ++i) submit("late", kLargeTime);
  TakeBegun();
  for (int i = 0; i < 40; ++i) RunOne();
  const std::vector<std::string> begun = TakeBegun();
  // The 100 ms that are kept are eight of these jobs.
  EXPECT_GE(std::count(begun.begin(), begun.end(), "late"), 20 - 8);
}

class SharesTest : public FairnessTest {
 protected:
  SharesTest() : FairnessTest(/*streams=*/4) {}
};

TEST_F(SharesTest, FourCallersGetDeviceTimeByTheirWeights) {
  struct Caller {
    double weight;
    absl::Duration cost;
  };
  const std::map<std::string, Caller> callers = {{"a", {1, absl::Microseconds(700)}},
                                                 {"b", {1, absl::Milliseconds(5)}},
                                                 {"c", {2, absl::Milliseconds(2)}},
                                                 {"d", {4, absl::Milliseconds(1)}}};
  const auto submit = [&](const std::string& name) {
    const Caller& caller = callers.at(name);
    ASSERT_TRUE(Submit(Claim(name, caller.cost, caller.weight)).ok());
  };
  for (const auto& [name, caller] : callers) {
    for (int i = 0; i < 20; ++i) submit(name);
  }
  // Each caller always has as many jobs.
  const absl::Time begin = SteadyNow();
  while (SteadyNow() - begin < absl::Seconds(10)) submit(RunOne().claim.flow);
  for (const auto& [name, caller] : callers) {
    const double share = absl::FDivDuration(device_time_[name], SteadyNow() - begin);
    EXPECT_NEAR(share, caller.weight / 8, 0.05 * caller.weight / 8) << name;
  }
}

TEST_F(SharesTest, DeviceTimeIsDividedAmongThoseThatRunTogether) {
  for (const char* caller : {"a", "b"}) ASSERT_TRUE(Submit(Claim(caller, kLargeTime)).ok());
  EndOne(absl::Milliseconds(10));
  EndOne(absl::Milliseconds(3));
  EXPECT_EQ(device_time_["a"], absl::Milliseconds(5));
  EXPECT_EQ(device_time_["b"], absl::Milliseconds(8));
  clock_.Advance(absl::Hours(1));  // idle
  ASSERT_TRUE(Submit(Claim("c", kLargeTime)).ok());
  EndOne(absl::Milliseconds(2));
  EXPECT_EQ(device_time_["c"], absl::Milliseconds(2));
}

class DeadlineTest : public FairnessTest {
 protected:
  static constexpr absl::Duration kTime = absl::Milliseconds(10);

  // One job runs, and `count` wait; as many have run before, so the pace is known.
  void Fill(int count) {
    for (int i = 0; i < 2 * count + 1; ++i) ASSERT_TRUE(Submit(Claim("a", kTime)).ok());
    for (int i = 0; i < count; ++i) EndOne(kTime);
    ASSERT_EQ(scheduler_.queued(), count);
  }
  StreamClaim Until(const std::string& caller, absl::Duration left) {
    StreamClaim claim = Claim(caller, kTime);
    claim.cost.lately = kTime;
    claim.deadline = SteadyNow() + left;
    return claim;
  }
  // The answer of both ways to ask.
  absl::Status Refusal(const StreamClaim& claim) {
    const absl::Status status = scheduler_.CheckWait(claim);
    EXPECT_EQ(Submit(claim), status);
    return status;
  }
};

TEST_F(DeadlineTest, AJobThatIsLongerThanItsTimeIsRefusedOnAnIdleDevice) {
  const absl::Status refused = Refusal(Until("a", kTime - absl::Milliseconds(1)));
  EXPECT_EQ(refused.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr("about 10ms on fake:0"), HasSubstr("its deadline is in 9ms")));
  EXPECT_TRUE(Submit(Until("a", kTime)).ok());
}

TEST_F(DeadlineTest, AJobWhoseTimeIsOverIsToldSo) {
  StreamClaim claim = Until("a", -absl::Milliseconds(1));
  EXPECT_EQ(Refusal(claim).message(), "the deadline passed before the job was queued");
  claim.cost.lately = absl::ZeroDuration();
  EXPECT_EQ(Refusal(claim).message(), "the deadline passed before the job was queued");
}

TEST_F(DeadlineTest, AGuessIsNoReasonToRefuse) {
  StreamClaim claim = Until("a", kTime / 2);
  claim.cost.lately = absl::ZeroDuration();
  EXPECT_TRUE(Submit(claim).ok());
}

TEST_F(DeadlineTest, AJobThatTheQueueMakesLateIsRefused) {
  // It would begin after 110 ms, or a quarter more of that, and take 10.
  Fill(10);
  EXPECT_TRUE(scheduler_.CheckWait(Until("a", absl::Milliseconds(148))).ok());
  const absl::Status refused = Refusal(Until("a", absl::Milliseconds(147)));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr("about 110ms for a stream of fake:0"),
                    HasSubstr("(10 jobs wait, 10 of them this caller's)"),
                    HasSubstr("then take 10ms"), HasSubstr("its deadline is in 147ms")));
  EXPECT_EQ(scheduler_.queued(), 10);
}

TEST_F(DeadlineTest, ARefusalSaysWhenTheQueueMayBeShortEnough) {
  Fill(40);  // 410 ms
  StreamClaim claim = Until("a", absl::Milliseconds(110));
  const std::optional<ReachedBound> reached = ReachedBoundOf(Refusal(claim));
  ASSERT_TRUE(reached.has_value());
  EXPECT_EQ(reached->retry_after, absl::Milliseconds(330)) << "80 ms may be waited";
  claim.cost.lately = absl::ZeroDuration();
  EXPECT_THAT(std::string(Refusal(claim).message()),
              HasSubstr("(40 jobs wait, 40 of them this caller's), perhaps a quarter more, but its "
                        "deadline is in 110ms"));
}

TEST_F(DeadlineTest, AnotherCallersQueueMakesNobodyLate) {
  Fill(10);
  // One of the other's jobs, that runs, and one more of them.
  EXPECT_TRUE(Submit(Until("b", absl::Milliseconds(60))).ok());
  EndOne(kTime);
  EndOne(kTime);
  EXPECT_EQ(begun_.back(), "b");
}

TEST_F(DeadlineTest, AWithdrawnJobMakesNobodyLate) {
  Fill(10);
  for (const auto& job : jobs_) scheduler_.Withdraw(job.get());
  EXPECT_TRUE(Submit(Until("a", absl::Milliseconds(40))).ok());
}

}  // namespace
}  // namespace gemmd
